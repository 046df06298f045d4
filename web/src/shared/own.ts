/**
 * isOwn reports whether an id, or the name of an operation or a trigger, is that of an integration that the workspace
 * has described itself.
 */
export const isOwn = (name: string): boolean => name.startsWith("x_");

/** bareName returns the id of an integration without what all own ones begin with. */
export const bareName = (id: string): string => (isOwn(id) ? id.slice(2) : id);

/** How long to keep what is known of own integrations: other people and programs can change them at any time. */
export const ownStaleTime = 30_000;

/** staleTimeOf returns how long to keep what is known of an integration, an operation or a trigger. */
export const staleTimeOf = (name: string): number => (isOwn(name) ? ownStaleTime : Number.POSITIVE_INFINITY);
