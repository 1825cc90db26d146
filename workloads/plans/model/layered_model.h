// SPDX-License-Identifier: GPL-2.0-only
// Describes models that are not transformers: a chain of convolutional and linear layers,
// optionally with embedding tables.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/plans/precision.h"

namespace railyard {

// Describes a convolution, square in kernel and output, that is applied to one sample; a linear
// layer is a convolution of 1 x 1.
struct ConvolutionalLayer {
  uint32_t in_channels = 0;
  uint32_t out_channels = 0;
  uint32_t kernel = 1;
  uint32_t output_side = 1;  // of the output, in positions
  bool bias = false;
  bool batch_norm = false;  // with a scale and a shift for each channel

  uint64_t MatrixElements() const { return uint64_t{in_channels} * out_channels * kernel * kernel; }
  // Returns the number of elements of each weight, in the order of the forward pass.
  std::vector<uint64_t> Weights() const;
  // Returns the operations of the forward pass, 2 per multiply-add, without norms and activation
  // functions.
  double Flops() const {
    return 2.0 * static_cast<double>(MatrixElements()) * output_side * output_side;
  }
};

// Describes embedding tables with rows of `width` elements; each sample looks up one row in each
// table.
struct EmbeddingTables {
  std::vector<uint64_t> rows;  // by table
  uint32_t width = 0;
};

struct LayeredModel {
  // Used only by deep learning recommendation models (Naumov et al., arXiv 1906.00091): `bottom`
  // turns a sample's numbers into a vector of `width`; this vector and the pairwise products of it
  // and the embeddings go through `layers`.
  std::vector<ConvolutionalLayer> bottom;
  std::optional<EmbeddingTables> tables;
  std::vector<ConvolutionalLayer> layers;
  Precision precision = Precision::kFp32;

  // Returns, for one sample, the operations of the products of all pairs of embeddings and the
  // bottom's output.
  double InteractionFlops() const;
};

// Returns the number of inputs of a recommendation model's top for `tables` tables of that width.
uint64_t InteractionWidth(uint64_t tables, uint64_t width);

uint64_t ParameterCount(const LayeredModel& model);
// Returns the number of parameters without the embedding tables.
uint64_t DenseParameterCount(const LayeredModel& model);
// Returns the operations of one sample's forward pass.
double ForwardFlops(const LayeredModel& model);

}  // namespace railyard
