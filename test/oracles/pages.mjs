// follow reads pages by their cursors until there are enough items. It tells read the cursor,
// and how many items to ask for, and read returns how many there were, and the next cursor.
export async function follow(size, { limit = 100, all }, read) {
  let found = 0;
  let cursor;
  do {
    const { count, next } = await read(cursor, all ? size : Math.min(limit, size));
    found += count;
    cursor = next;
  } while (cursor && (all || found < limit));
}
