/* TLS for the load programs: one session on a connected socket, which is the caller's. The server's certificate is judged
 * against the authorities of the file that ORBIT_CA_FILE names, else the system's, and against the host of the address. */
#ifndef ORBIT_TOOLS_LOAD_SECURE_H
#define ORBIT_TOOLS_LOAD_SECURE_H

#include <stdbool.h>
#include <stddef.h>

struct secure;

enum secure_result { SECURE_DONE, SECURE_READS, SECURE_WRITES, SECURE_BROKEN };

/* host: a name or a numeric address. NULL: the file of authorities cannot be used, which was said on stderr. */
struct secure *secure_new(int fd, const char *host);
void secure_free(struct secure *secure); /* NULL is fine; the socket stays open */
/* Goes on with the handshake. SECURE_READS, SECURE_WRITES: when the socket can be read, or written. SECURE_BROKEN: the server
 * is not who it should be, or no TLS; said on stderr, once a process. */
enum secure_result secure_handshake(struct secure *secure);
/* Bytes sent; 0: later, or broken (which reading shows). */
size_t secure_send(struct secure *secure, const void *data, size_t size);
/* Bytes read; 0: the end; -1: nothing now. size is at least a whole record, 16 KiB, so that nothing stays unseen. */
long secure_receive(struct secure *secure, void *out, size_t size);

#endif
