// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/training/gradient_buckets.h"

#include <utility>

namespace railyard {
namespace {

// torch/nn/parallel/distributed.py: DistributedDataParallel.broadcast_bucket_size.
constexpr uint64_t kBroadcastBucketBytes = uint64_t{250} << 20;

}  // namespace

GradientBuckets::GradientBuckets(const Training& training, Precision parameter_precision,
                                 PlanStream stream, uint32_t communicator, uint32_t group_size,
                                 ProgramWriter& writer)
    : training_(training),
      parameter_(DatatypeOf(parameter_precision)),
      gradient_(DatatypeOf(training.gradient_precision)),
      stream_(stream),
      communicator_(communicator),
      group_size_(group_size),
      writer_(writer) {}

bool GradientBuckets::BeginBackward(uint32_t micro_batch) {
  is_last_micro_batch_ = micro_batch + 1 == training_.micro_batches;
  return group_size_ > 1 && (training_.zero >= 2 || is_last_micro_batch_);
}

void GradientBuckets::Broadcast(const std::vector<uint64_t>& weights) {
  uint64_t elements = 0;
  for (const uint64_t weight : weights) {
    elements += weight;
    if (elements * DatatypeBytes(parameter_) >= kBroadcastBucketBytes) {
      BroadcastBuffers(std::exchange(elements, 0), parameter_);
    }
  }
  BroadcastBuffers(elements, parameter_);
}

void GradientBuckets::BroadcastBuffers(uint64_t elements, Datatype datatype) {
  if (elements == 0 || group_size_ == 1) return;
  writer_.Collective({.kind = CollectiveKind::kBroadcast,
                      .communicator = communicator_,
                      .count = elements,
                      .datatype = datatype});
}

void GradientBuckets::Ready(uint64_t elements) {
  open_elements_ += elements;
  // ZeRO 3 reduces whole units.
  if (training_.zero < 3 &&
      open_elements_ * DatatypeBytes(gradient_) >= training_.gradient_bucket_bytes) {
    CloseBucket();
  }
}

void GradientBuckets::CloseBucket() {
  if (open_elements_ == 0) return;
  const uint64_t elements = std::exchange(open_elements_, 0);
  if (training_.overlap_gradients) {
    Reduce(elements, writer_.Mark());
  } else {
    held_back_.push_back(elements);
  }
}

void GradientBuckets::EndBackward(bool is_last) {
  CloseBucket();
  if (!is_last && training_.zero < 2) return;
  for (const uint64_t elements : held_back_) Reduce(elements, writer_.Mark());
  held_back_.clear();
}

void GradientBuckets::Reduce(uint64_t elements, uint32_t after) {
  const bool is_divided = training_.zero > 0;
  last_ =
      writer_.Add(stream_,
                  {.kind = is_divided ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce,
                   .communicator = communicator_,
                   .count = is_divided ? ShareOf(elements) : elements,
                   .datatype = gradient_},
                  after);
  if (is_last_micro_batch_) reduced_.push_back(elements);
}

void GradientBuckets::GatherParameters() {
  if (training_.zero == 0 || training_.zero == 3 || group_size_ == 1) {
    reduced_.clear();
    return;
  }
  const uint32_t stepped = writer_.Mark();
  for (const uint64_t elements : reduced_) {
    last_ = writer_.Add(stream_,
                        {.kind = CollectiveKind::kAllGather,
                         .communicator = communicator_,
                         .count = ShareOf(elements),
                         .datatype = parameter_},
                        stepped);
  }
  reduced_.clear();
  writer_.WaitFor(last_);
}

void GradientBuckets::GatherUnit(uint64_t elements) {
  if (training_.zero < 3 || group_size_ == 1 || elements == 0) return;
  const uint32_t begins = writer_.Mark();
  last_ = writer_.Add(stream_,
                      {.kind = CollectiveKind::kAllGather,
                       .communicator = communicator_,
                       .count = ShareOf(elements),
                       .datatype = parameter_},
                      std::exchange(unit_began_, begins));
  writer_.WaitFor(last_);
}

}  // namespace railyard
