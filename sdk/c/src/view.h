/* Reading an object of an answer, member by member: members that are absent become NULL, 0 or false; members that this version
 * does not know are passed over, so that a newer server can be read. A member of the wrong type sets `bad`. */
#ifndef ORBIT_SDK_VIEW_H
#define ORBIT_SDK_VIEW_H

#include "codec/json.h"
#include "sdk.h"

struct sdk_view {
  struct json *json;
  struct sdk_arena *arena; /* where texts are copied to */
  uint32_t object;         /* the token that is read; 0 is the document */
  bool absent;             /* there is no such object */
  bool bad;
};

/* The same view on the object `name`; `absent` when there is none, and then all its members are. */
struct sdk_view sdk_view_object(struct sdk_view *view, const char *name);
/* The same where it must be there: absent sets `bad` of both. The end of reading it is sdk_view_join. */
struct sdk_view sdk_view_needed(struct sdk_view *view, const char *name);
/* Once inner has been read: what was bad about it is bad about view. */
void sdk_view_join(struct sdk_view *view, const struct sdk_view *inner);
/* Token of the array `name`, or 0. */
uint32_t sdk_view_array(struct sdk_view *view, const char *name);

const char *sdk_view_text(struct sdk_view *view, const char *name);     /* NULL when absent or null */
const char *sdk_view_required(struct sdk_view *view, const char *name); /* absent is bad; never NULL */
struct bytes sdk_view_span(struct sdk_view *view, const char *name);    /* not copied: valid until the next json_parse */
/* A number, or a decimal string. */
uint64_t sdk_view_u64(struct sdk_view *view, const char *name);
uint32_t sdk_view_u32(struct sdk_view *view, const char *name);
bool sdk_view_bool(struct sdk_view *view, const char *name);
int64_t sdk_view_time(struct sdk_view *view, const char *name);
bool sdk_view_id(struct sdk_view *view, const char *name, struct id *ret_id); /* false: absent or not an id */
/* Any value but null, as written; NULL when absent. */
const char *sdk_view_raw(struct sdk_view *view, const char *name, size_t *ret_size);
/* The object itself as written; "" when absent. */
const char *sdk_view_whole(struct sdk_view *view, size_t *ret_size);
/* The array of strings `name`; NULL and 0 when absent. */
const char *const *sdk_view_texts(struct sdk_view *view, const char *name, size_t *ret_count);
/* The array of times `name`, which must be there. */
const int64_t *sdk_view_times(struct sdk_view *view, const char *name, size_t *ret_count);
/* {"code","message","details"}; code is "" when there is no such object. */
struct orbit_fault sdk_view_fault(struct sdk_view *view, const char *name);

#endif
