#pragma once

#include "fastweights/data.h"

/// One reader per format; read_data() chooses.

namespace fastweights::data {

/// UEA and UCR sets: a file, or a folder <Name> with <Name>_TRAIN and <Name>_TEST.
DataSet read_ts(const std::string& path, const ReadOptions& options);
DataSet read_arff(const std::string& path, const ReadOptions& options);

/// One table of all series: id, time, channels, label.
DataSet read_csv(const std::string& path, const ReadOptions& options);
/// A folder with a table per series and labels.csv (id, label).
DataSet read_csv_folder(const std::string& path, const ReadOptions& options);
/// numpy arrays: values [N, C], times [N], offsets [B + 1], labels [B]; or values [B, L, C].
DataSet read_npz(const std::string& path, const ReadOptions& options);

/// Unpacked folders of the challenges.
DataSet read_physionet2019(const std::string& path, const ReadOptions& options);
DataSet read_physionet2012(const std::string& path, const ReadOptions& options);
/// A folder per word, as in Speech Commands.
DataSet read_speech(const std::string& path, const ReadOptions& options);

/// Generated sets: spirals, long-recall, synthetic-eigenworms, with settings after a colon
/// ("long-recall:gap=500,samples=200").
DataSet make_data(const std::string& name);

}  // namespace fastweights::data
