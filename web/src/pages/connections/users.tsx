import type { Connection } from "@/shared/connections/data";
import { Link } from "@/ui/link";

/** Users lists workflows that use a connection, with the steps and triggers that do. */
export function Users({ users, label }: { users: Connection["used_by"]; label?: string }) {
	return (
		<ul aria-label={label} className="max-h-40 overflow-y-auto">
			{users.map(({ workflow_id: id, name, active, steps, triggers }) => (
				<li key={id} className="break-words">
					<p>
						<Link to="/workflows/$id" params={{ id }} className="underline">
							{name}
						</Link>
						{!active && <span className="text-muted"> (not active)</span>}
					</p>
					<p className="text-12 text-muted">{placesText(steps ?? [], triggers ?? [])}</p>
				</li>
			))}
		</ul>
	);
}

function placesText(steps: readonly string[], triggers: readonly string[]): string {
	return [listed("step", steps), listed("trigger", triggers)].filter(Boolean).join(", ");
}

function listed(what: string, ids: readonly string[]): string {
	if (ids.length === 0) return "";
	return `${ids.length === 1 ? what : `${what}s`} ${ids.join(", ")}`;
}
