// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/model/layered_model.h"

namespace railyard {

std::vector<uint64_t> ConvolutionalLayer::Weights() const {
  std::vector<uint64_t> weights = {MatrixElements()};
  if (bias) weights.push_back(out_channels);
  if (batch_norm) weights.insert(weights.end(), {out_channels, out_channels});
  return weights;
}

double LayeredModel::InteractionFlops() const {
  if (!tables) return 0;
  const auto vectors = static_cast<double>(tables->rows.size() + 1);
  return vectors * (vectors - 1) / 2 * 2 * tables->width;
}

uint64_t InteractionWidth(uint64_t tables, uint64_t width) {
  return width + (tables + 1) * tables / 2;
}

uint64_t DenseParameterCount(const LayeredModel& model) {
  uint64_t count = 0;
  for (const auto* const layers : {&model.bottom, &model.layers}) {
    for (const ConvolutionalLayer& layer : *layers) {
      for (const uint64_t elements : layer.Weights()) count += elements;
    }
  }
  return count;
}

uint64_t ParameterCount(const LayeredModel& model) {
  uint64_t count = DenseParameterCount(model);
  if (model.tables) {
    for (const uint64_t rows : model.tables->rows) count += rows * model.tables->width;
  }
  return count;
}

double ForwardFlops(const LayeredModel& model) {
  double flops = model.InteractionFlops();
  for (const auto* const layers : {&model.bottom, &model.layers}) {
    for (const ConvolutionalLayer& layer : *layers) flops += layer.Flops();
  }
  return flops;
}

}  // namespace railyard
