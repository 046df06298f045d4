import { Kbd } from "@/ui/badge";
import { Dialog } from "@/ui/dialog";
import { keyLabels, type Shortcut, useShortcuts } from "./keys";

/** Shortcuts lists the shortcuts that are currently active. */
export function Shortcuts({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
	const shortcuts = useShortcuts();
	const groups = new Map<string, Shortcut[]>();
	for (const one of shortcuts) groups.set(one.group, [...(groups.get(one.group) ?? []), one]);
	return (
		<Dialog open={open} onOpenChange={onOpenChange} title="Keyboard shortcuts">
			<div className="grid gap-x-8 gap-y-4 sm:grid-cols-2">
				{[...groups].map(([group, list]) => (
					<section key={group} aria-label={group}>
						<h3 className="pb-1 text-12 font-medium text-muted">{group}</h3>
						<dl>
							{list.map((one) => (
								<div key={one.keys + one.description} className="flex h-8 items-center justify-between gap-4">
									<dt className="truncate">{one.description}</dt>
									<dd className="flex shrink-0 gap-1">
										{keyLabels(one.keys).map((key, at) => (
											// biome-ignore lint/suspicious/noArrayIndexKey: the same key can appear twice
											<Kbd key={at}>{key}</Kbd>
										))}
									</dd>
								</div>
							))}
						</dl>
					</section>
				))}
			</div>
		</Dialog>
	);
}
