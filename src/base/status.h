/* The one vocabulary of results: an enum from status.def, its texts, and `struct fault`, which carries a refusal to the
 * person or program that must mend it. */
#ifndef ORBIT_BASE_STATUS_H
#define ORBIT_BASE_STATUS_H

#include <stdbool.h>
#include <stdint.h>

enum status {
#define STATUS(name, text, http, ws, retry, help) STATUS_##name,
#include "base/status.def"
#undef STATUS
  STATUS_COUNT
};

/* What went wrong, with which field, and what to do. Filled only on failure; always NUL-terminated. */
struct fault {
  enum status status;
  uint32_t retry_after_ms; /* 0: none */
  char field[192];         /* JSON Pointer, header or parameter name; "" where no field is to blame */
  char message[320];       /* a sentence for people; never a secret */
};

const char *status_name(enum status status);    /* "INVALID_ARGUMENT"; static */
const char *status_text(enum status status);    /* a sentence; static */
unsigned status_http(enum status status);       /* 200…599 */
unsigned status_close_code(enum status status); /* WebSocket close code */
bool status_is_retryable(enum status status);   /* the same request may succeed later */
/* The status with this public name; STATUS_COUNT when there is none. */
enum status status_from_name(const char *name);

/* Fills *fault and returns status, so that a refusal is one line. field may be NULL. fault may be NULL. */
enum status fault_set(struct fault *fault, enum status status, const char *field, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
#ifdef ORBIT_ANALYSIS
/* Analysers look at one file at a time: this tells them what fault_set returns. */
#define fault_set(fault, code, ...) (((void)(fault_set)(fault, code, __VA_ARGS__)), (enum status)(code))
#endif

#endif
