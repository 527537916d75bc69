/* tls_dir - the folder that holds a process' identity: ca.crt, tls.crt and tls.key, as kubelet mounts them from a
 * Secret and `trainyard certs` writes them. Blocks for file I/O. */
#ifndef TRAINYARD_IDENTITY_TLS_DIR_H
#define TRAINYARD_IDENTITY_TLS_DIR_H

#include <sys/stat.h>

#include "identity/certificate.h"

#define TLS_DIR_CA          "ca.crt"
#define TLS_DIR_CERTIFICATE "tls.crt"
#define TLS_DIR_KEY         "tls.key"

struct tls_dir { /* one consistent reading of the folder; texts are owned */
    char *ca, *certificate, *key;
    struct certificate_info info;
};
void tls_dir_fini(struct tls_dir *d); /* wipes the key */
DEFINE_AUTO_FINI(tls_dir, tls_dir_fini);
/* ERR_INPUT names the file and what is wrong with it: absent, not PEM, a key of another certificate, expired at now_s,
 * not a certificate of Trainyard. Reads again when the files change in between (a Secret is replaced as a whole). */
MUST_USE int tls_dir_read(const char *path, int64_t now_s, struct tls_dir *ret, struct err *e);

/* Which files the folder has now: for those who read it again when it changes. A look costs three calls of stat(). */
enum { TLS_DIR_FILES = 3 };
struct tls_dir_stamps {
    struct stat of[TLS_DIR_FILES]; /* only the fields that tell versions of a file apart; zero where there is no file */
};
struct tls_dir_stamps tls_dir_look(const char *path);
bool tls_dir_changed(const struct tls_dir_stamps *before, const struct tls_dir_stamps *now);

/* Makes the folder (mode 0700) and the three files (the key has mode 0600), replaced in one step for
 * readers. They are not flushed to the disk. */
MUST_USE int tls_dir_write(const char *path, const char *ca, const struct leaf *leaf, struct err *e);
/* The same for a new folder that is never written again: three plain files, which every program can copy. */
MUST_USE int tls_dir_write_new(const char *path, const char *ca, const struct leaf *leaf, struct err *e);
/* Removes what tls_dir_write made, and the folder if nothing else is in it. */
void tls_dir_remove(const char *path);

#endif
