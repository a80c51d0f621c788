#pragma once

#include "fastweights/model.h"
#include "model/config_fields.h"

/// Configurations of any architecture as JSON.

namespace fastweights {

/// Sizes, the architecture's name, then its own fields.
void visit_fields(ModelConfig& config, Fields& visit);

/// An error about the name of a model that does not exist.
[[noreturn]] void refuse_model(const std::string& name);

/// A model's configuration as the present version writes it, from one of version 0.1.
Json upgraded_model_json(Json json);

/// An error for a key that another architecture has, and this one does not.
void check_architecture_keys(const Json& given, const ModelConfig& base);

}  // namespace fastweights
