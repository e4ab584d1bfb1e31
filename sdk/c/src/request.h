/* What the public functions have in common: judging arguments, making paths, and one call that gives one object or one page. */
#ifndef ORBIT_SDK_REQUEST_H
#define ORBIT_SDK_REQUEST_H

#include "client.h"
#include "sdk.h"
#include "view.h"

/* ---- Arguments: ORBIT_OK, or ORBIT_INVALID_ARGUMENT with the name as field ---- */

int sdk_id_judge(const char *id, const char *name, struct orbit_error *error);
int sdk_key_judge(const char *operation_key, struct orbit_error *error);
/* A key and the id of what is written to. */
int sdk_target_judge(const char *operation_key, const char *id, const char *name, struct orbit_error *error);

/* One rule about a field of a request. */
struct sdk_rule {
  bool good;
  const char *field, *problem;
};
int sdk_rules_judge(const struct sdk_rule *rules, size_t count, struct orbit_error *error);

/* ---- Paths ---- */

enum { sdk_path_bytes = 256 };

/* Appends ?name=value or &name=value, percent-encoded; nothing when value is NULL. */
void sdk_parameter_write(struct buffer *path, const char *name, const char *value);
/* Judges and appends limit (0: none) and cursor (NULL: none), and the NUL that ends the path. */
int sdk_page_write(struct buffer *path, uint32_t limit, const char *cursor, struct orbit_error *error);

/* ---- Calls ---- */

/* Reads a view into an object of the library's making; what it does not set is zero. */
typedef void sdk_read(struct sdk_view *view, void *object);

/* How an answer becomes an object. */
struct sdk_kind {
  size_t size; /* of the object */
  sdk_read *read;
  const char *member; /* of data, that is read; NULL: data itself */
  bool secret;        /* the answer may hold a token: what it passed through is wiped */
};

struct sdk_call {
  const char *method, *path;
  const char *key;           /* NULL: none */
  const struct buffer *body; /* NULL: none */
};
/* *ret_object is for sdk_result_free. */
int sdk_call_object(struct orbit_client *client, const struct sdk_call *call, const struct sdk_kind *kind, void **ret_object,
                    struct orbit_error *error);

struct sdk_page {
  void *list; /* list_size zeroed bytes, which own the items; for sdk_result_free */
  void **items;
  size_t count;
  const char *next_cursor;
};
/* Items are read as kind says, but for `member`, which is not looked at. */
int sdk_get_page(struct orbit_client *client, const char *path, const struct sdk_kind *kind, size_t list_size,
                 struct sdk_page *ret_page, struct orbit_error *error);
/* The same for a list whose path needs no more than limit and cursor. */
int sdk_get_plain_page(struct orbit_client *client, const char *path, uint32_t limit, const char *cursor,
                       const struct sdk_kind *kind, size_t list_size, struct sdk_page *ret_page, struct orbit_error *error);
/* The items of an answer's array `items`; a member of the wrong type or a missing one makes data bad. */
void sdk_items_read(struct sdk_view *data, const struct sdk_kind *kind, void ***ret_items, size_t *ret_count);

#endif
