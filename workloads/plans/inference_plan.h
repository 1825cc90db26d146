// SPDX-License-Identifier: GPL-2.0-only
// Tensor-parallel inference: queries in batches, one batch after the other; each is a prefill step
// over all prompts, then a decoding step for each further token. Each step has
//   - an AllReduce of the embeddings, whose table's rows are divided over the group,
//   - in each layer one of the attention's output and one of the feed-forward network's (two with a
//     shared expert that is reduced on its own), tokens x hidden elements each,
//   - an AllGather of the last tokens' logits, each GPU's share of the vocabulary.
// This is what DeepSeek-V3's own inference code does (github.com/deepseek-ai/DeepSeek-V3,
// inference/model.py), with SEPARATE. Sampling costs nothing; the host's work between steps is left
// out.
#pragma once

#include <cstdint>

#include "traces/trace.h"
#include "workloads/plans/plan.h"

namespace railyard {

uint64_t InferenceOperationCount(const Plan& plan);
// Precondition: the plan's job is an Inference.
Trace SynthesizeInference(const Plan& plan);

}  // namespace railyard
