import type { ReactNode } from "react";

/** Note stands where the content of a file would be. */
export function Note({ children }: { children: ReactNode }) {
	return <p className="rounded-8 bg-sunken px-4 py-6 text-center text-muted">{children}</p>;
}
