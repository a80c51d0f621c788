// the precompiled header needs a source that uses it
