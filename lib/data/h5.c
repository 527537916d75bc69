/* HDF5 File Format Specification 3.0, the parts that h5py's default (libver "earliest") writes. */
#include <string.h>

#include "base/str.h"
#include "data/h5.h"

enum {
    DEPTH_MAX = 32,      /* of groups; h5py's files of Keras have 5 */
    NODES_MAX = 4000000, /* blocks read: trees, symbol nodes, headers, messages */
    ARRAYS_MAX = 100000,
    NAME_LONGEST = 255,
    PATH_LONGEST = 1000,
    TREE_LEVELS_MAX = 16,
};
/* Types of header messages. */
enum {
    MSG_SPACE = 0x01,
    MSG_LINK = 0x06,
    MSG_TYPE = 0x03,
    MSG_LAYOUT = 0x08,
    MSG_FILTERS = 0x0B,
    MSG_ATTRIBUTE = 0x0C,
    MSG_CONTINUATION = 0x10,
    MSG_TABLE = 0x11
};
#define UNDEFINED UINT64_MAX

struct h5 { /* one file being read */
    const unsigned char *data;
    size_t n;
    const char *label;
    uint64_t base;
    size_t nodes; /* looked at so far */
    struct named_arrays list;
    char path[PATH_LONGEST + 1];
};

struct piece { /* bytes of the file */
    const unsigned char *p;
    size_t n;
};

struct object {          /* an object header, digested */
    uint64_t tree, heap; /* of a group */
    bool is_group, is_new, has_space, has_type, has_layout, filtered;
    struct piece space, type, layout;
    char *name; /* the attribute `name` */
};

static void object_fini(struct object *o)
{
    free(o->name);
}
DEFINE_AUTO_FINI(object, object_fini);

static uint64_t le(const unsigned char *p, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return v;
}

/* n bytes at an address of the file, or NULL. */
static const unsigned char *at(const struct h5 *h, uint64_t address, uint64_t n)
{
    if (address == UNDEFINED || address > h->n || h->base > h->n - address)
        return NULL;
    address += h->base;
    return n <= h->n - address ? h->data + address : NULL;
}

static int damaged(const struct h5 *h, const char *what, struct err *e)
{
    return err_set(e, ERR_INPUT, "%s: damaged HDF5 file: %s, at '/%.200s'", h->label, what, h->path);
}

static int too_new(const struct h5 *h, const char *what, struct err *e)
{
    return err_set(e, ERR_INPUT,
                   "%s: %s cannot be read, at '/%.200s'; write the file with h5py's defaults, as Keras does, or export "
                   "safetensors",
                   h->label, what, h->path);
}

/* A file that refers to itself has no end. */
static int count_node(struct h5 *h, struct err *e)
{
    return ++h->nodes <= NODES_MAX ? 0 : damaged(h, "more than 4000000 parts", e);
}

/* ---- datatype, dataspace, layout ---- */

static const struct {
    uint8_t kind; /* class: 0 integer, 1 floating point, as the specification numbers them */
    uint8_t size;
    bool is_signed;
    enum dtype dtype;
} NUMBERS[] = {
    { 1, 4, true, DT_FLOAT },   { 1, 8, true, DT_DOUBLE },  { 1, 2, true, DT_HALF },    { 0, 1, true, DT_INT8 },
    { 0, 2, true, DT_INT16 },   { 0, 4, true, DT_INT32 },   { 0, 8, true, DT_INT64 },   { 0, 1, false, DT_UINT8 },
    { 0, 2, false, DT_UINT16 }, { 0, 4, false, DT_UINT32 }, { 0, 8, false, DT_UINT64 },
};

/* The positions of sign, exponent and mantissa of an IEEE float: bits of the exponent and of the mantissa. */
static bool is_ieee(const unsigned char *properties, uint32_t size)
{
    unsigned exponent = size == 2 ? 5 : size == 4 ? 8 : 11, bits = 8 * size;
    return le(properties, 2) == 0 && le(properties + 2, 2) == bits && properties[4] == bits - 1 - exponent &&
           properties[5] == exponent && properties[6] == 0 && properties[7] == bits - 1 - exponent;
}

/* What keeps it from being read; NULL: nothing. */
static const char *digest_type(const struct piece *m, struct array *a)
{
    static const char *const STRANGE = "its type is not a number";
    if (m->n < 8)
        return STRANGE;
    uint8_t kind = m->p[0] & 15;
    uint32_t flags = (uint32_t)le(m->p + 1, 3), size = (uint32_t)le(m->p + 4, 4);
    for (size_t i = 0; i < COUNT_OF(NUMBERS); i++) {
        if (NUMBERS[i].kind != kind || NUMBERS[i].size != size ||
            (kind == 0 && ((flags & 8) != 0) != NUMBERS[i].is_signed))
            continue;
        if (kind == 1 && (m->n < 20 || (flags & 0x40) != 0 || !is_ieee(m->p + 8, size)))
            return STRANGE;
        a->dtype = NUMBERS[i].dtype;
        a->swap = (flags & 1) != 0 && size > 1;
        return NULL;
    }
    return STRANGE;
}

static const char *digest_space(const struct piece *m, struct shape *ret)
{
    static const char *const STRANGE = "its shape cannot be read";
    if (m->n < 4)
        return STRANGE;
    size_t header = m->p[0] == 1 ? 8 : 4;
    if ((m->p[0] != 1 && m->p[0] != 2) || (m->p[0] == 2 && m->p[3] > 1) || m->p[1] > SHAPE_MAX_RANK ||
        m->n < header + 8 * (size_t)m->p[1])
        return STRANGE;
    ret->rank = m->p[1];
    for (int i = 0; i < ret->rank; i++) {
        uint64_t dim = le(m->p + header + 8 * i, 8);
        if (dim > INT64_MAX)
            return STRANGE;
        ret->dim[i] = (int64_t)dim;
    }
    return NULL;
}

/* The place of `bytes` bytes of elements. */
static const char *digest_layout(const struct h5 *h, const struct piece *m, size_t bytes, const unsigned char **ret)
{
    if (m->n >= 2 && m->p[0] == 3 && m->p[1] == 2)
        return "it is stored in chunks; save it without chunks and compression";
    if (m->n >= 18 && m->p[0] == 3 && m->p[1] == 1) {
        uint64_t size = le(m->p + 10, 8);
        *ret = size == bytes ? at(h, le(m->p + 2, 8), bytes) : NULL;
        if (bytes == 0)
            *ret = h->data;
        return *ret != NULL ? NULL : "it was never written, or lies beyond the end of the file";
    }
    if (m->n >= 4 && m->p[0] == 3 && m->p[1] == 0) {
        *ret = m->p + 4;
        return le(m->p + 2, 2) == bytes && bytes <= m->n - 4 ? NULL : "its size is wrong";
    }
    return "its storage layout is not supported; write the file with h5py's defaults";
}

static const char *digest_array(const struct h5 *h, const struct object *o, struct array *a)
{
    size_t count, bytes;
    const char *why = digest_type(&o->type, a);
    if (why == NULL)
        why = digest_space(&o->space, &a->shape);
    if (why != NULL)
        return why;
    if (o->filtered)
        return "it is compressed; save it without chunks and compression";
    if (shape_count(&a->shape, &count, NULL) < 0 || size_mul(count, dtype_size(a->dtype), &bytes, NULL) < 0)
        return "its size overflows";
    return digest_layout(h, &o->layout, bytes, &a->data);
}

/* ---- the attribute `name` ---- */

static char *text_of(const void *p, uint64_t n)
{
    n = strnlen(p, MIN(n, (uint64_t)NAME_LONGEST));
    return xstrndup(p, (size_t)n);
}

/* Object `index` of a global heap collection: the storage of strings of variable length. */
static char *heap_text(struct h5 *h, uint64_t address, uint64_t index, uint64_t length)
{
    const unsigned char *p = at(h, address, 16);
    if (p == NULL || memcmp(p, "GCOL", 4) != 0)
        return NULL;
    uint64_t size = le(p + 8, 8), offset = 16;
    if (at(h, address, size) == NULL)
        return NULL;
    while (offset <= size && size - offset >= 16 && ++h->nodes <= NODES_MAX) {
        uint64_t number = le(p + offset, 2), bytes = le(p + offset + 8, 8);
        if (number == 0 || bytes > size - offset - 16)
            return NULL;
        if (number == index)
            return text_of(p + offset + 16, MIN(bytes, length));
        offset += 16 + (bytes + 7) / 8 * 8;
    }
    return NULL;
}

/* Version 1: name, datatype and dataspace are padded to 8 bytes; versions 2 and 3: they are not. */
static void take_attribute(struct h5 *h, const struct piece *m, struct object *o)
{
    if (m->n < 8 || m->p[0] < 1 || m->p[0] > 3 || (m->p[0] > 1 && m->p[1] != 0) || o->name != NULL)
        return;
    size_t pad = m->p[0] == 1 ? 7 : 0, header = m->p[0] == 3 ? 9 : 8;
    size_t name = (size_t)le(m->p + 2, 2), type = (size_t)le(m->p + 4, 2), space = (size_t)le(m->p + 6, 2);
    size_t name_at = header, type_at = name_at + ((name + pad) & ~pad),
           value_at = type_at + ((type + pad) & ~pad) + ((space + pad) & ~pad);
    if (value_at > m->n || name != 5 || type < 8 || memcmp(m->p + name_at, "name", 5) != 0)
        return;
    const unsigned char *t = m->p + type_at, *value = m->p + value_at;
    uint8_t kind = t[0] & 15;
    uint64_t size = le(t + 4, 4);
    if (kind == 3 && size <= m->n - value_at) /* a string of that many bytes */
        o->name = text_of(value, size);
    else if (kind == 9 && (t[1] & 15) == 1 && m->n - value_at >= 16) /* of variable length */
        o->name = heap_text(h, le(value + 4, 8), le(value + 12, 4), le(value, 4));
}

/* ---- object headers ---- */

static int take_message(struct h5 *h, unsigned type, unsigned flags, const struct piece *m, struct object *o,
                        struct err *e)
{
    if ((flags & 2) != 0 && (type == MSG_SPACE || type == MSG_TYPE))
        return 0; /* shared with another object: it stays unread */
    switch (type) {
    case MSG_SPACE:
        o->has_space = true;
        o->space = *m;
        break;
    case MSG_TYPE:
        o->has_type = true;
        o->type = *m;
        break;
    case MSG_LAYOUT:
        o->has_layout = true;
        o->layout = *m;
        break;
    case MSG_FILTERS:
        o->filtered = true;
        break;
    case MSG_ATTRIBUTE:
        take_attribute(h, m, o);
        break;
    case MSG_LINK:
        o->is_new = true;
        break;
    case MSG_TABLE:
        if (m->n < 16)
            return damaged(h, "a symbol table", e);
        o->is_group = true;
        o->tree = le(m->p, 8);
        o->heap = le(m->p + 8, 8);
        break;
    default:
        break;
    }
    return 0;
}

struct blocks { /* of one object header: pieces that are still to be read */
    struct piece at[64];
    size_t n;
};

static int take_block(struct h5 *h, struct blocks *todo, struct piece block, unsigned *left, struct object *o,
                      struct err *e)
{
    while (block.n >= 8 && *left > 0) {
        unsigned type = (unsigned)le(block.p, 2), size = (unsigned)le(block.p + 2, 2), flags = block.p[4];
        struct piece m = { block.p + 8, size };
        if (size > block.n - 8)
            return damaged(h, "a message of an object header", e);
        (*left)--;
        if (count_node(h, e) < 0 || take_message(h, type, flags, &m, o, e) < 0)
            return -1;
        if (type == MSG_CONTINUATION && size >= 16) {
            uint64_t length = le(m.p + 8, 8);
            const unsigned char *next = at(h, le(m.p, 8), length);
            if (next == NULL || todo->n == COUNT_OF(todo->at))
                return damaged(h, "the continuation of an object header", e);
            todo->at[todo->n++] = (struct piece){ next, (size_t)length };
        }
        block.p += 8 + size;
        block.n -= 8 + size;
    }
    return 0;
}

static int read_object(struct h5 *h, uint64_t address, struct object *o, struct err *e)
{
    const unsigned char *p = at(h, address, 16);
    if (p == NULL || count_node(h, e) < 0)
        return damaged(h, "an object header beyond its end", e);
    if (memcmp(p, "OHDR", 4) == 0)
        return too_new(h, "an object header of version 2", e);
    if (p[0] != 1)
        return damaged(h, "not an object header", e);
    unsigned left = (unsigned)le(p + 2, 2);
    uint64_t size = le(p + 8, 4);
    const unsigned char *first = at(h, address + 16, size);
    if (first == NULL)
        return damaged(h, "an object header beyond its end", e);
    struct blocks todo = { .at = { { first, (size_t)size } }, .n = 1 };
    for (size_t i = 0; i < todo.n; i++)
        if (take_block(h, &todo, todo.at[i], &left, o, e) < 0)
            return -1;
    return 0;
}

/* ---- groups ---- */

struct group {
    const unsigned char *names; /* the local heap's data */
    uint64_t names_size;
    const char *owner; /* the group's attribute `name` */
    size_t path_length;
    int depth;
};

static int walk(struct h5 *h, uint64_t address, const char *owner, int depth, struct err *e);

static int take_symbol(struct h5 *h, const struct group *g, const unsigned char *entry, struct err *e)
{
    uint64_t name = le(entry, 8);
    const char *text = (const char *)g->names + MIN(name, g->names_size);
    size_t length = name < g->names_size ? strnlen(text, (size_t)(g->names_size - name)) : 0;

    if (length == 0 || length == g->names_size - name || length > NAME_LONGEST ||
        g->path_length + length + 1 > PATH_LONGEST)
        return damaged(h, "the name of a member is missing or too long", e);
    if (le(entry + 16, 4) == 2) /* a symbolic link: what it names is found where it is */
        return 0;
    size_t n = g->path_length;
    if (n > 0)
        h->path[n++] = '/';
    memcpy(h->path + n, text, length);
    h->path[n + length] = '\0';
    if (walk(h, le(entry + 8, 8), g->owner, g->depth + 1, e) < 0)
        return -1;
    h->path[g->path_length] = '\0';
    return 0;
}

static int walk_symbols(struct h5 *h, const struct group *g, uint64_t address, struct err *e)
{
    const unsigned char *p = at(h, address, 8);
    if (p == NULL || memcmp(p, "SNOD", 4) != 0)
        return damaged(h, "a symbol table node", e);
    size_t n = (size_t)le(p + 6, 2);
    p = at(h, address, 8 + 40 * n);
    if (p == NULL)
        return damaged(h, "a symbol table node beyond its end", e);
    for (size_t i = 0; i < n; i++)
        if (count_node(h, e) < 0 || take_symbol(h, g, p + 8 + 40 * i, e) < 0)
            return -1;
    return 0;
}

/* A version 1 B-tree: keys and children take turns. level: at most that of this node. */
static int walk_tree(struct h5 *h, const struct group *g, uint64_t address, int level, struct err *e)
{
    const unsigned char *p = at(h, address, 24);
    if (p == NULL || memcmp(p, "TREE", 4) != 0 || p[4] != 0 || p[5] > level || count_node(h, e) < 0)
        return damaged(h, "the tree of a group", e);
    size_t n = (size_t)le(p + 6, 2);
    int below = p[5] - 1;
    p = at(h, address, 24 + 16 * n + 8);
    if (p == NULL)
        return damaged(h, "the tree of a group beyond its end", e);
    for (size_t i = 0; i < n; i++) {
        uint64_t child = le(p + 24 + 8 + 16 * i, 8);
        if ((below < 0 ? walk_symbols(h, g, child, e) : walk_tree(h, g, child, below, e)) < 0)
            return -1;
    }
    return 0;
}

static int walk_group(struct h5 *h, const struct object *o, int depth, struct err *e)
{
    struct group g = { .owner = o->name, .path_length = strlen(h->path), .depth = depth };
    const unsigned char *heap = at(h, o->heap, 32);
    if (depth > DEPTH_MAX)
        return damaged(h, "groups within groups, more than 32 deep", e);
    if (heap == NULL || memcmp(heap, "HEAP", 4) != 0)
        return damaged(h, "the names of a group", e);
    g.names_size = le(heap + 8, 8);
    g.names = at(h, le(heap + 24, 8), g.names_size);
    if (g.names == NULL)
        return damaged(h, "the names of a group beyond its end", e);
    return walk_tree(h, &g, o->tree, TREE_LEVELS_MAX, e);
}

static int walk(struct h5 *h, uint64_t address, const char *owner, int depth, struct err *e)
{
    AUTO_FINI(object) o = { 0 };
    if (read_object(h, address, &o, e) < 0)
        return -1;
    if (o.is_new)
        return too_new(h, "a group of the newer form", e);
    if (o.is_group)
        return walk_group(h, &o, depth, e);
    if (!o.has_layout)
        return 0; /* a named datatype, or an empty thing */
    if (h->list.n >= ARRAYS_MAX)
        return damaged(h, "more than 100000 datasets", e);
    struct named_array *a = named_arrays_add(&h->list, xstrdup(h->path), owner != NULL ? xstrdup(owner) : NULL);
    a->unread = o.has_type && o.has_space ? digest_array(h, &o, &a->array) : "its type or shape cannot be read";
    return 0;
}

/* ---- the file ---- */

static const unsigned char SIGNATURE[8] = { 0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n' };

bool h5_is(const void *data, size_t n)
{
    return n >= sizeof(SIGNATURE) && memcmp(data, SIGNATURE, sizeof(SIGNATURE)) == 0;
}

/* The superblock: sizes, base address, the symbol table entry of the root group. */
static int find_root(struct h5 *h, uint64_t *ret, struct err *e)
{
    if (!h5_is(h->data, h->n) || h->n < 96)
        return damaged(h, "it does not begin like one, or ends early", e);
    uint8_t version = h->data[8];
    if (version > 1)
        return too_new(h, "an HDF5 file of the newer form (libver=\"latest\")", e);
    if (h->data[13] != 8 || h->data[14] != 8)
        return too_new(h, "an HDF5 file with addresses that are not of 8 bytes", e);
    size_t addresses = version == 1 ? 28 : 24;
    h->base = le(h->data + addresses, 8);
    *ret = le(h->data + addresses + 32 + 8, 8);
    return 0;
}

int h5_read(const void *data, size_t n, const char *label, struct named_arrays *ret, struct err *e)
{
    auto_free struct h5 *h = xcalloc(1, sizeof(*h));
    uint64_t root;
    *h = (struct h5){ .data = data, .n = n, .label = label };
    if (find_root(h, &root, e) < 0 || walk(h, root, NULL, 0, e) < 0) {
        named_arrays_fini(&h->list);
        return -1;
    }
    *ret = h->list;
    return 0;
}
