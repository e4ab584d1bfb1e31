/* Owns the texts of status.def and the filling of faults. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
  const char *name;
  const char *text;
  unsigned http;
  unsigned close_code;
  bool retryable;
} table[STATUS_COUNT] = {
#define STATUS(name, text, http, ws, retry, help) {text, help, http, ws, retry},
#include "base/status.def"
#undef STATUS
};

static unsigned checked(enum status status) {
  return (unsigned)status < STATUS_COUNT ? (unsigned)status : (unsigned)STATUS_INTERNAL;
}

const char *status_name(enum status status) { return table[checked(status)].name; }
const char *status_text(enum status status) { return table[checked(status)].text; }
unsigned status_http(enum status status) { return table[checked(status)].http; }
unsigned status_close_code(enum status status) { return table[checked(status)].close_code; }
bool status_is_retryable(enum status status) { return table[checked(status)].retryable; }

enum status status_from_name(const char *name) {
  for (unsigned i = 0; i < STATUS_COUNT; i++)
    if (strcmp(table[i].name, name) == 0) return (enum status)i;
  return STATUS_COUNT;
}

enum status(fault_set)(struct fault *fault, enum status status, const char *field, const char *format, ...) {
  if (fault == NULL) return status;
  va_list arguments;
  fault->status = status;
  fault->retry_after_ms = 0;
  (void)snprintf(fault->field, sizeof fault->field, "%s", field != NULL ? field : "");
  va_start(arguments, format);
  (void)vsnprintf(fault->message, sizeof fault->message, format, arguments);
  va_end(arguments);
  return status;
}
