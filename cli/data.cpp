#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/printable.h"
#include "data_options.h"
#include "fastweights/data.h"

namespace fastweights::cli {
namespace {

struct DataCommand {
  DataOptions data;
  std::string name, out, format;
  bool json = false;
};

void list() {
  std::printf("Built in, generated:\n");
  for (const auto& [name, sentence] : built_in_sets())
    std::printf("  %-22s %s\n", name.c_str(), sentence.c_str());
  std::printf("\nFor download with 'fastweights data fetch NAME':\n");
  for (const auto& [name, sentence] : known_sets())
    std::printf("  %-26s %s\n", name.c_str(), sentence.c_str());
  std::printf("\nFormats:\n");
  for (const auto& [name, sentence] : data_formats())
    std::printf("  %-16s %s\n", name.c_str(), sentence.c_str());
}

struct Lengths {
  int64_t least = 0, median = 0, most = 0;
};

Lengths lengths(const DataSet& data) {
  std::vector<int64_t> all;
  for (int64_t b = 0; b < data.samples(); ++b) all.push_back(data.length(b));
  if (all.empty()) return {};
  std::sort(all.begin(), all.end());
  return {all.front(), all[all.size() / 2], all.back()};
}

// of the known values of a column
struct Summary {
  double missing = 0, mean = NAN, least = NAN, most = NAN;
};

Summary summary(const std::vector<double>& table, size_t width, size_t column) {
  double sum = 0, count = 0, least = INFINITY, most = -INFINITY;
  for (size_t i = column; i < table.size(); i += width) {
    const double x = table[i];
    if (std::isnan(x)) continue;
    sum += x;
    count += 1;
    least = std::min(least, x);
    most = std::max(most, x);
  }
  if (count == 0) return {.missing = 1};
  return {1 - count * static_cast<double>(width) / static_cast<double>(table.size()), sum / count, least,
          most};
}

double missing_share(const DataSet& data) {
  const auto missing =
      std::count_if(data.values.begin(), data.values.end(), [](double x) { return std::isnan(x); });
  return data.values.empty() ? 0 : static_cast<double>(missing) / static_cast<double>(data.values.size());
}

std::vector<int64_t> class_counts(const DataSet& data) {
  std::vector<int64_t> counts(data.head.classes.size() + 1, 0);
  for (const int64_t label : data.labels)
    ++counts[label < 0 ? data.head.classes.size() : static_cast<size_t>(label)];
  return counts;
}

std::string bar(double share) { return std::string(static_cast<size_t>(std::lround(40 * share)), '#'); }

void print_classes(const DataSet& data) {
  if (data.labels.empty()) return;
  const std::vector<int64_t> counts = class_counts(data);
  const auto most = static_cast<double>(*std::max_element(counts.begin(), counts.end()));
  std::printf("\nclasses\n");
  for (size_t k = 0; k < counts.size(); ++k) {
    if (k == data.head.classes.size() && counts[k] == 0) continue;
    const std::string name = k < data.head.classes.size() ? data.head.classes[k] : "(unknown)";
    std::printf("  %-16s %7lld %5.1f %%  %s\n", printable(name).c_str(), static_cast<long long>(counts[k]),
                100 * static_cast<double>(counts[k]) / static_cast<double>(data.samples()),
                bar(static_cast<double>(counts[k]) / std::max(most, 1.0)).c_str());
  }
}

// a histogram with ten bins
void print_lengths(const DataSet& data, const Lengths& l) {
  std::printf("\nlengths\n");
  constexpr int64_t kBins = 10;
  const int64_t width = std::max<int64_t>(1, (l.most - l.least + kBins) / kBins);
  std::map<int64_t, int64_t> bins;
  for (int64_t b = 0; b < data.samples(); ++b) ++bins[(data.length(b) - l.least) / width];
  int64_t most = 1;
  for (const auto& [bin, count] : bins) most = std::max(most, count);
  for (const auto& [bin, count] : bins)
    std::printf("  %6lld .. %-7lld %7lld  %s\n", static_cast<long long>(l.least + bin * width),
                static_cast<long long>(std::min(l.most, l.least + (bin + 1) * width - 1)),
                static_cast<long long>(count),
                bar(static_cast<double>(count) / static_cast<double>(most)).c_str());
}

void print_columns(const char* what, const std::vector<std::string>& names,
                   const std::vector<double>& table) {
  if (names.empty()) return;
  std::printf("\n%-24s %9s %12s %12s %12s\n", what, "missing", "mean", "least", "most");
  for (size_t c = 0; c < names.size(); ++c) {
    const Summary x = summary(table, names.size(), c);
    std::printf("%-24s %7.1f %% %12.5g %12.5g %12.5g\n", printable(names[c]).c_str(), 100 * x.missing, x.mean,
                x.least, x.most);
  }
}

void print_info(const DataSet& data) {
  const Lengths l = lengths(data);
  const DataHead& head = data.head;
  std::printf("%s (%s)\n", printable(head.name).c_str(), printable(head.origin).c_str());
  std::printf("  series           %lld\n  rows             %lld\n", static_cast<long long>(data.samples()),
              static_cast<long long>(data.rows()));
  std::printf("  lengths          %lld to %lld, median %lld\n", static_cast<long long>(l.least),
              static_cast<long long>(l.most), static_cast<long long>(l.median));
  std::printf("  channels         %zu, %.1f %% of values missing\n", head.channels.size(),
              100 * missing_share(data));
  if (!head.statics.empty()) std::printf("  static features  %zu\n", head.statics.size());
  if (!head.targets.empty()) std::printf("  targets          %zu\n", head.targets.size());
  const std::string unit = head.time_unit.empty() ? "numbers without a unit (set one with --time-unit)"
                                                  : "in units of '" + head.time_unit + "'";
  std::printf("  times            %s%s%s\n", printable(unit).c_str(), head.time_zero.empty() ? "" : ", 0 is ",
              printable(head.time_zero).c_str());
  std::map<Part, int64_t> parts;
  for (const Part part : data.parts) ++parts[part];
  if (parts.size() > 1 || !parts.contains(Part::Any))
    std::printf("  parts            %lld train, %lld validation, %lld test\n",
                static_cast<long long>(parts[Part::Train] + parts[Part::Any]),
                static_cast<long long>(parts[Part::Validation]), static_cast<long long>(parts[Part::Test]));
  if (!data.step_labels.empty()) std::printf("  step labels      yes\n");
  if (!head.skipped.empty()) std::printf("  skipped          %zu\n", head.skipped.size());
  print_classes(data);
  print_lengths(data, l);
  print_columns("channel", head.channels, data.values);
  print_columns("static feature", head.statics, data.statics);
  print_columns("target", head.targets, data.targets);
}

void print_json(const DataSet& data) {
  const Lengths l = lengths(data);
  Json json = {{"name", data.head.name},
               {"origin", data.head.origin},
               {"samples", data.samples()},
               {"rows", data.rows()},
               {"channels", data.head.channels},
               {"static_features", data.head.statics},
               {"targets", data.head.targets},
               {"classes", data.head.classes},
               {"time_unit", data.head.time_unit},
               {"time_zero", data.head.time_zero},
               {"missing", missing_share(data)},
               {"skipped", data.head.skipped},
               {"notes", data.head.notes},
               {"lengths", {{"least", l.least}, {"median", l.median}, {"most", l.most}}}};
  if (!data.labels.empty()) {
    std::vector<int64_t> counts = class_counts(data);
    json["unknown"] = counts.back();
    counts.pop_back();
    json["counts"] = counts;
  }
  std::printf("%s\n", shown_dump(json).c_str());
}

void fetch_set(const DataCommand& command) {
  const auto progress = [](int64_t done, int64_t all) {
    std::fprintf(stderr, "\r%.1f MB%s", static_cast<double>(done) / 1e6,
                 all > 0 ? message(" of ", (all + 500000) / 1000000, " MB").c_str() : "");
  };
  const auto note = [](const std::string& line) {
    std::fprintf(stderr, "\nnote: %s\n", printable(line).c_str());
  };
  const std::string folder = fetch_data(command.name, command.data.data_dir, progress, note);
  std::fprintf(stderr, "\n");
  std::printf("%s\n", folder.c_str());
}

}  // namespace

void add_data(CLI::App& program, Session& session) {
  auto command = std::make_shared<DataCommand>();
  CLI::App* app = program.add_subcommand("data", "Inspect, download, convert and cache data");
  app->require_subcommand(1);
  app->add_subcommand("list", "Built-in sets, known sets to fetch, and formats")->callback([] { list(); });

  CLI::App* info =
      app->add_subcommand("info", "Shapes, lengths, missing values, classes, channels and static features");
  add_data_options(*info, command->data, "data to inspect");
  info->add_flag("--json", command->json, "print one JSON object");
  info->footer("Example:\n  fastweights data info spirals");
  info->callback([command] {
    const DataSet data = read(command->data, data_config(command->data));
    command->json ? print_json(data) : print_info(data);
  });

  auto preparing = std::make_shared<DataCommand>();
  CLI::App* prepare = app->add_subcommand("prepare", "Read data into the cache, for fast loading later");
  add_data_options(*prepare, preparing->data, "data to cache");
  prepare->callback([preparing, &session] {
    const DataSet data = read(preparing->data, data_config(preparing->data));
    const std::vector<std::string>& notes = data.head.notes;
    const bool cached = std::none_of(notes.begin(), notes.end(),
                                     [](const std::string& note) { return note.starts_with("not cached"); });
    if (cached) {
      std::printf("%lld series in %s\n", static_cast<long long>(data.samples()),
                  preparing->data.cache_dir.c_str());
    } else {
      session.exit_status = 1;
    }
  });

  auto converting = std::make_shared<DataCommand>();
  CLI::App* convert = app->add_subcommand("convert", "Write data in another format");
  add_data_options(*convert, converting->data, "data to convert");
  convert->add_option("--out,-o", converting->out, "output file or folder")->required();
  convert->add_option("--to", converting->format,
                      "csv, csv-folder, npz or ts; default: by the extension of --out");
  convert->footer("Example:\n  fastweights data convert spirals --out spirals.csv");
  convert->callback([converting] {
    const DataSet data = read(converting->data, data_config(converting->data));
    write_data(data, converting->out, converting->format);
    std::printf("%lld series in %s\n", static_cast<long long>(data.samples()),
                printable(converting->out).c_str());
  });

  auto fetching = std::make_shared<DataCommand>();
  fetching->data.data_dir = default_data_dir();
  CLI::App* get = app->add_subcommand("fetch", "Download a published data set");
  get->add_option("name", fetching->name, "name from 'fastweights data list'")->required();
  get->add_option("--data-dir", fetching->data.data_dir, "folder for the data (FASTWEIGHTS_DATA)")
      ->capture_default_str();
  get->callback([fetching] { fetch_set(*fetching); });
}

}  // namespace fastweights::cli
