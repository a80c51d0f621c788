#pragma once

#include <tuple>
#include <utility>
#include <variant>

#include "fastweights/model.h"

/// Configurations compared member by member.

namespace fastweights::testing {

// every member, by a binding that no longer compiles when one is added; equality and JSON of the library
// share a list of keys, so a test of them needs one of its own
inline auto members(const NaturalCubic& c) {
  const auto& [filling] = c;
  return std::tuple(filling);
}
inline auto members(const HermiteCubic&) { return std::tuple(); }
inline auto members(const Linear&) { return std::tuple(); }
inline auto members(const Rectilinear& c) {
  const auto& [channel] = c;
  return std::tuple(channel);
}
inline auto members(const Hold&) { return std::tuple(); }
inline auto members(const PointWindows& c) {
  const auto& [increments, tail] = c;
  return std::tuple(increments, tail);
}
inline auto members(const DurationWindows& c) {
  const auto& [duration] = c;
  return std::tuple(duration);
}
inline auto members(const ObservationSteps& c) {
  const auto& [parts, max_step, edges] = c;
  return std::tuple(parts, max_step, edges);
}
inline auto members(const RegularSteps& c) {
  const auto& [size, edges] = c;
  return std::tuple(size, edges);
}
inline auto members(const FixedSteps& c) {
  const auto& [size, edges, shortening, times] = c;
  return std::tuple(size, edges, shortening, times);
}
// stop and jump times are the model's own
inline auto members(const AdaptiveSteps& c) {
  const auto& [rtol, atol, control, first, smallest, largest, most, stop, jump, through] = c;
  return std::tuple(rtol, atol, control, first, smallest, largest, most, through);
}

inline auto members(const LogSignatures& c) {
  const auto& [depth, windows, clock, last] = c;
  const auto* points = std::get_if<PointWindows>(&windows);
  const auto* timed = std::get_if<DurationWindows>(&windows);
  return std::tuple(depth, points ? members(*points) : members(PointWindows{-1}),
                    timed ? members(*timed) : members(DurationWindows{-1}), clock, last);
}

// which alternative is chosen, with its members
template <typename... T>
auto members(const std::variant<T...>& value) {
  using Members = std::variant<std::pair<T*, decltype(members(std::declval<T>()))>...>;
  return std::visit(
      []<typename C>(const C& chosen) {
        return Members(std::pair<C*, decltype(members(chosen))>(nullptr, members(chosen)));
      },
      value);
}

inline auto members(const ControlConfig& c) {
  const auto& [path, never] = c;
  return std::tuple(members(path), never);
}

inline auto members(const SolverConfig& c) {
  const auto& [method, steps, gradient, memory] = c;
  return std::tuple(method, members(steps), gradient, memory);
}

inline auto members(const FastWeights& c) {
  const auto& [rule, drive, control, solver, backend, hidden, heads, keys, values, ff, static_hidden, layers,
               layer_input, residual, norm, initial, query, read, rate, activation, dropout, value_dropout,
               unit, deterministic, unused] = c;
  return std::tuple(rule, drive, members(control), members(solver), backend, hidden, heads, keys, values, ff,
                    static_hidden, layers, layer_input, residual, norm, initial, query, read, rate,
                    activation, dropout, value_dropout, unit, deterministic, unused);
}

inline auto members(const NeuralCde& c) {
  const auto& [control, solver, backend, field, hidden, static_hidden, dropout, unit] = c;
  const auto& [field_hidden, layers, form, end, tied] = field;
  return std::tuple(members(control), members(solver), backend, field_hidden, layers, form, end, tied, hidden,
                    static_hidden, dropout, unit);
}

inline auto members(const OdeRnn& c) {
  const auto& [control, solver, field, rows, hidden, static_hidden, dropout, unit] = c;
  const auto& [field_hidden, layers] = field;
  const auto& [input, values_only, known] = rows;
  return std::tuple(members(control), members(solver), field_hidden, layers, input, values_only, known,
                    hidden, static_hidden, dropout, unit);
}

inline auto members(const OdeRfwp& c) {
  const auto& [form, rule, control, solver, field, rows, latent, hidden, heads, ff, static_hidden, dropout,
               unit] = c;
  const auto& [field_hidden, layers] = field;
  return std::tuple(form, rule, members(control), members(solver), field_hidden, layers, rows.order,
                    rows.known_channels, latent.divergence, hidden, heads, ff, static_hidden, dropout, unit);
}

inline auto members(const LatentOde& c) {
  const auto& [control, solver, field, latent, rows, hidden, static_hidden, dropout, unit] = c;
  const auto& [size, divergence, reconstruction] = latent;
  return std::tuple(members(control), members(solver), field.hidden_size, field.layers, size, divergence,
                    reconstruction, rows.known_channels, hidden, static_hidden, dropout, unit);
}

template <typename Options>
bool same_options(const Architecture& a, const Architecture& b) {
  return a.get_if<Options>() && b.get_if<Options>() && members(a.get<Options>()) == members(b.get<Options>());
}

inline bool same_members(const ModelConfig& a, const ModelConfig& b) {
  const auto& [channels, features, outputs, architecture] = a;
  if (channels != b.channels || features != b.static_features || outputs != b.outputs) return false;
  return same_options<FastWeights>(architecture, b.architecture) ||
         same_options<NeuralCde>(architecture, b.architecture) ||
         same_options<OdeRnn>(architecture, b.architecture) ||
         same_options<OdeRfwp>(architecture, b.architecture) ||
         same_options<LatentOde>(architecture, b.architecture);
}

}  // namespace fastweights::testing
