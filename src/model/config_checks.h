#pragma once

#include "fastweights/model_config.h"

/// Parts of check_config() that all systems share.

namespace fastweights {

void check_at_least(const char* key, int64_t value, int64_t smallest);
void check_positive(const char* key, double value);
/// At least 0 and below 1.
void check_rate(const char* key, double value);

void check_control(const ModelConfig& config);
void check_solver(const ModelConfig& config);
/// No choice of control and solver that was asked for is left unread by the others.
void check_parts_read(const ModelConfig& config);

/// Whether a system reads that key; a group's name stands for any of its keys.
bool reads_key(System system, const std::string& key);
/// No key was changed that the system does not read.
void check_keys_read(const ModelConfig& config);
/// The rest, for systems other than fast weight programmers in continuous time.
void check_system(const ModelConfig& config);

}  // namespace fastweights
