// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/model/layered_presets.h"

#include <utility>

namespace railyard {
namespace {

ConvolutionalLayer Normed(uint32_t in, uint32_t out, uint32_t kernel, uint32_t output_side) {
  return {.in_channels = in,
          .out_channels = out,
          .kernel = kernel,
          .output_side = output_side,
          .batch_norm = true};
}

ConvolutionalLayer Biased(uint32_t in, uint32_t out, uint32_t kernel, uint32_t output_side) {
  return {.in_channels = in,
          .out_channels = out,
          .kernel = kernel,
          .output_side = output_side,
          .bias = true};
}

ConvolutionalLayer Linear(uint32_t in, uint32_t out) { return Biased(in, out, 1, 1); }

// Four stages of two blocks of two 3 x 3 convolutions; the second and later stages halve the sides
// and carry their input over by a 1 x 1 convolution.
LayeredModel ResNet18() {
  LayeredModel model;
  model.layers.push_back(Normed(3, 64, 7, 112));
  uint32_t channels = 64;
  for (const auto& [width, side] : {std::pair{64u, 56u}, {128u, 28u}, {256u, 14u}, {512u, 7u}}) {
    model.layers.push_back(Normed(channels, width, 3, side));
    model.layers.push_back(Normed(width, width, 3, side));
    if (channels != width) model.layers.push_back(Normed(channels, width, 1, side));
    model.layers.push_back(Normed(width, width, 3, side));
    model.layers.push_back(Normed(width, width, 3, side));
    channels = width;
  }
  model.layers.push_back(Linear(512, 1000));
  return model;
}

LayeredModel Vgg11() {
  LayeredModel model;
  uint32_t channels = 3;
  for (const auto& [width, side] : {std::pair{64u, 224u},
                                    {128u, 112u},
                                    {256u, 56u},
                                    {256u, 56u},
                                    {512u, 28u},
                                    {512u, 28u},
                                    {512u, 14u},
                                    {512u, 14u}}) {
    model.layers.push_back(Biased(channels, width, 3, side));
    channels = width;
  }
  model.layers.push_back(Linear(512 * 7 * 7, 4096));
  model.layers.push_back(Linear(4096, 4096));
  model.layers.push_back(Linear(4096, 1000));
  return model;
}

std::vector<ConvolutionalLayer> Perceptron(const std::vector<uint32_t>& widths) {
  std::vector<ConvolutionalLayer> layers;
  for (size_t i = 1; i < widths.size(); ++i) layers.push_back(Linear(widths[i - 1], widths[i]));
  return layers;
}

LayeredModel DlrmCriteo() {
  LayeredModel model;
  model.bottom = Perceptron({13, 512, 256, 128});
  model.tables = EmbeddingTables{
      .rows = {39884406, 39043,    17289,    7420,     20263,  3,     7120, 1543, 63,
               38532951, 2953546,  403346,   10,       2208,   11938, 155,  4,    976,
               14,       39979771, 25641295, 39664984, 585935, 12972, 108,  36},
      .width = 128};
  model.layers =
      Perceptron({static_cast<uint32_t>(InteractionWidth(26, 128)), 1024, 1024, 512, 256, 1});
  return model;
}

}  // namespace

const std::vector<LayeredPreset>& LayeredPresets() {
  static const std::vector<LayeredPreset> kPresets = {
      {"resnet-18", "ResNet-18 on images of 224 x 224",
       "He et al. (arXiv 1512.03385), table 1; shortcuts of type B as torchvision's resnet18",
       11'689'512, 2 * 1.814e9,
       "torchvision, ResNet18_Weights.IMAGENET1K_V1: num_params 11,689,512; 1.814 GFLOPS, which "
       "count a multiply-add once",
       ResNet18()},
      {"vgg-11", "VGG-11 on images of 224 x 224",
       "Simonyan and Zisserman (arXiv 1409.1556), table 1, configuration A", 132'863'336,
       2 * 7.609e9,
       "torchvision, VGG11_Weights.IMAGENET1K_V1: num_params 132,863,336; 7.609 GFLOPS, which "
       "count "
       "a multiply-add once",
       Vgg11()},
      {"dlrm-criteo-1tb", "Recommendation model of MLPerf on Criteo's logs",
       "facebookresearch/dlrm, bench/run_and_time.sh with --max-ind-range=40000000: widths, and "
       "the "
       "rows of its tables",
       24.03e9, 4.820e6,
       "none published: 187.77 million rows of 128, and 2 x (13 x 512 + 512 x 256 + 256 x 128 + "
       "479 "
       "x 1024 + 1024 x 1024 + 1024 x 512 + 512 x 256 + 256) + 351 x 2 x 128",
       DlrmCriteo()},
  };
  return kPresets;
}

const LayeredPreset* FindLayeredPreset(std::string_view name) {
  for (const LayeredPreset& preset : LayeredPresets()) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

}  // namespace railyard
