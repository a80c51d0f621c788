#pragma once

#include "data/time_axis.h"

/// Rows that are not in the order of time, or share a time.

namespace fastweights::data {

/// Sorts the rows of each series and merges those of the same time, as far as the form of the table asks for
/// it; notes say how many. What is left as it is, collect_series() refuses.
void order_rows(Parsed& parsed, const TableForm& form);

/// Rejects a time that is not later than that of the previous row, unless the form says what to do with it;
/// `of_series` follows "the previous row" in the message.
void check_order(double time, const Series& series, const TableForm& form, const Location& location,
                 std::string_view text, const std::string& of_series);

}  // namespace fastweights::data
