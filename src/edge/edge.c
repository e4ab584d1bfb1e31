/* Owns what both edges ask before they hand anything to the engine: who is it, and may they. */
#include "edge/edge.h"

#include <strings.h>
#include <time.h>

int64_t edge_now_us(struct edge *edge) {
  if (atomic_load_explicit(&edge->phase, memory_order_acquire) != EDGE_REPLAYING) return engine_now_us(edge->engine);
  struct timespec wall;
  (void)clock_gettime(CLOCK_REALTIME, &wall);
  return (int64_t)wall.tv_sec * 1000000 + wall.tv_nsec / 1000;
}

/* The token of "Bearer" 1*SP token; data NULL when the value is not of this form. */
static struct bytes bearer_token(const char *value) {
  static const char scheme[] = "Bearer ";
  struct bytes none = {NULL, 0};
  if (strncasecmp(value, scheme, sizeof scheme - 1) != 0) return none;
  const char *token = value + sizeof scheme - 1;
  while (*token == ' ') token++;
  struct bytes text = bytes_text(token);
  return text.size > 0 && bytes_is_visible(text) ? text : none;
}

enum status edge_authenticate(struct edge *edge, const char *value, struct principal *ret_principal, struct fault *fault) {
  if (value == NULL)
    return fault_set(fault, STATUS_UNAUTHENTICATED, "Authorization", "the header Authorization: Bearer TOKEN is missing");
  struct bytes token = bearer_token(value);
  if (token.data == NULL)
    return fault_set(fault, STATUS_UNAUTHENTICATED, "Authorization", "the header Authorization must be \"Bearer TOKEN\"");
  return directory_authenticate(engine_directory(edge->engine), token, edge_now_us(edge), ret_principal, fault);
}

enum status edge_permit(const struct principal *principal, enum permission permission, struct fault *fault) {
  if ((principal->permissions >> permission & 1) != 0) return STATUS_OK;
  return fault_set(fault, STATUS_PERMISSION_DENIED, NULL, "the credential lacks the permission %s",
                   permission_text(permission));
}
