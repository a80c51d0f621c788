#pragma once

#include <functional>

#include "architectures/baseline.h"
#include "architectures/packed.h"

namespace fastweights {

/// A recurrence through all rows, in packed order: states [R, d] after the rows, from inputs [R, E] and the
/// state before the first row [B, d].
using RowLayer = std::function<Tensor(const Packed& packed, const Tensor& input, const Tensor& first)>;

RowLayer make_gru_layer(const std::string& name, int64_t inputs, int64_t size, nn::ParameterMaker& make);
RowLayer make_lstm_layer(const std::string& name, int64_t inputs, int64_t size, nn::ParameterMaker& make);
RowLayer make_lem_layer(const std::string& name, int64_t inputs, int64_t size, nn::ParameterMaker& make);

}  // namespace fastweights
