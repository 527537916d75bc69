/* date - dates and times in the fields of a csv file, as seconds, and the numbers that a model gets of them. Inside of
 * lib/data. Pure.
 *
 * A date is the seconds since 1970-01-01 00:00 of the calendar and clock that the field shows: a time zone is accepted
 * behind an ISO 8601 time and has no effect. The calendar is the Gregorian one for all years 1 to 9999. A time without
 * a date is on 1970-01-01.
 *
 * format: NULL for ISO 8601 (2020-01-31, 2020-01-31T12:30:01.5Z, with a space for the T), else the directives of
 * strptime that date_format_check() accepts: %Y %y %m %d %b %H %M %S and %%.
 */
#ifndef TRAINYARD_DATA_DATE_H
#define TRAINYARD_DATA_DATE_H

#include "data/text.h"
#include "job/job.h"

bool date_format_check(const char *format);
/* The whole field is a date. */
bool date_parse(const struct text_field *field, const char *format, double *ret_seconds);
/* n numbers of it: the year, month 1 to 12, day 1 to 31, dayofweek 0 (Monday) to 6, dayofyear 1 to 366, the hour, the
 * minute, and seconds since midnight. */
void date_parts(double seconds, const enum date_part *parts, size_t n, float *ret);
/* "2020-01-31", with the time when it is not midnight. */
const char *date_text(double seconds, char out[32]);

#endif
