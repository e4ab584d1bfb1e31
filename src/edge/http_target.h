/* Request targets, read from their raw bytes: the HTTP library decodes %2F and cuts at %00 before a program sees the path.
 * Pure. */
#ifndef ORBIT_EDGE_HTTP_TARGET_H
#define ORBIT_EDGE_HTTP_TARGET_H

#include "base/bytes.h"
#include "base/limits.h"
#include "base/status.h"

struct target_parameter {
  struct bytes name, value;
};

/* Path segments and query parameters, percent-decoded. Spans point into the text that was parsed. */
struct target {
  struct bytes segments[target_segments_max];
  struct target_parameter parameters[target_parameters_max];
  unsigned segment_count; /* target_segments_max + 1: more than any route has */
  unsigned parameter_count;
};

/* Parses origin form, or absolute form (whose authority is left out), and decodes in place: text is changed and must outlive
 * *ret_target. A segment is split off before it is decoded, so %2F never makes one; in the query + means a space.
 * INVALID_ARGUMENT: bad or unfinished escape, %00, a byte that no target may hold, a value that is not UTF-8, a parameter
 * without name or given twice (fault names it), too many parameters. */
enum status target_parse(char *text, size_t size, struct target *ret_target, struct fault *fault);

/* The parameter's value; data NULL when it is not given. */
struct bytes target_parameter(const struct target *target, const char *name);

/* INVALID_ARGUMENT naming the first parameter that is not among names (NULL-terminated; NULL: none are known). */
enum status target_judge_parameters(const struct target *target, const char *const *names, struct fault *fault);

/* A decimal number without sign or leading zero. False: it is none, or too large. */
bool number_parse(struct bytes text, uint64_t *ret_value);
/* A decimal number without sign or leading zero in min..max. INVALID_ARGUMENT naming the parameter; absent: OK, fallback. */
enum status target_number(const struct target *target, const char *name, uint64_t min, uint64_t max, uint64_t fallback,
                          uint64_t *ret_value, struct fault *fault);

#endif
