/** A smaller workflow is seen as a whole anyway, and a minimap would only cover a part of it. */
const least = 31;

/** isLarge reports whether a canvas has so many nodes at its top level that it needs a minimap. */
export function isLarge(nodes: readonly { readonly parentId?: string }[]): boolean {
	return nodes.filter((node) => node.parentId === undefined).length >= least;
}
