#pragma once

#include <map>
#include <string>
#include <vector>

#include "fastweights/model.h"

/// The models of the published code, with its names and all of its peculiarities, for comparison.

namespace fastweights::published {

enum class Intensity { Off, On };  ///< whether observation counts are additional channels

/// Speech Commands: hebb_ode, oja_ode, delta_ode, hebb_cde, oja_cde, delta_cde, hebb_cde_v2, hebb_cde_v3,
/// hebb_cde_dx_only, oja_cde_dx_only, delta_cde_dx_only, big_fw_cde.
ModelConfig speech(const std::string& model);

/// PhysioNet sepsis: the same names; W(t0) from static features.
ModelConfig sepsis(const std::string& model, Intensity intensity);

/// EigenWorms on log-signatures of this depth: ode_hebb, ode_oja, ode_delta, cde_hebb, cde_oja, cde_delta,
/// multi_delta.
ModelConfig eigenworms(const std::string& model, int64_t depth);

/// Names of the above.
const std::vector<std::string>& speech_models();
const std::vector<std::string>& eigenworms_models();

/// Copies tensors with the names of the published state_dict into the model, and returns the published name
/// of each parameter. Missing or additional tensors are an error.
std::map<std::string, std::string> load_parameters(Model& model,
                                                   const std::map<std::string, Tensor>& tensors);

/// The same for any architecture; a parameter may be a concatenation of several published ones, by rows.
std::map<std::string, std::vector<std::string>> load_state_dict(const Model& model,
                                                                const std::map<std::string, Tensor>& tensors);

/// Speech Commands and PhysioNet: ncde, gruode, mygruode, dt, decay, odernn with natural cubic splines.
ModelConfig baseline(const std::string& model, Intensity intensity);
const std::vector<std::string>& baseline_models();

/// EigenWorms on log-signatures of this depth.
ModelConfig neural_rde(int64_t depth);

}  // namespace fastweights::published
