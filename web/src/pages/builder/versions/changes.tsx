import type { Diff, FieldDiff, Json } from "@/shared/workflow/model";
import { Badge } from "@/ui/badge";

const tones = { added: "good", removed: "bad", changed: "warn", moved: "accent", renamed: "accent" } as const;

/** Changes lists the differences between two definitions, step by step. */
export function Changes({ diff }: { diff: Diff }) {
	const count = diff.steps.length + diff.triggers.length + diff.settings.length;
	if (count === 0) return <p className="text-muted">No changes.</p>;
	return (
		<ul className="flex flex-col gap-2">
			{diff.triggers.map((one) => (
				<Entry
					key={`@${one.trigger_id}`}
					change={one.change}
					name={one.trigger_id}
					kind="Trigger"
					fields={one.fields}
				/>
			))}
			{diff.steps.map((one) => (
				<Entry
					key={`${one.change} ${one.step_id}`}
					change={one.change}
					name={(one.to ?? one.from)?.name ?? one.step_id}
					kind={(one.to ?? one.from)?.uses ?? "Loop"}
					fields={one.fields}
					was={one.change === "renamed" ? one.from?.id : undefined}
				/>
			))}
			{diff.settings.length > 0 && <Entry change="changed" name="Settings" kind="Workflow" fields={diff.settings} />}
		</ul>
	);
}

interface EntryProps {
	change: keyof typeof tones;
	name: string;
	kind: string;
	fields: readonly FieldDiff[];
	was?: string;
}

function Entry({ change, name, kind, fields, was }: EntryProps) {
	return (
		<li className="rounded-8 border bg-surface">
			<div className="flex min-w-0 items-center gap-2 px-3 py-2">
				<span className="shrink-0">
					<Badge tone={tones[change]}>{change}</Badge>
				</span>
				<span className="min-w-0 truncate font-medium" title={name}>
					{name}
				</span>
				<span className="min-w-0 truncate text-12 text-muted">{was ? `was ${was}` : kind}</span>
			</div>
			{fields.length > 0 && (
				<dl className="flex flex-col gap-2 border-t px-3 py-2 text-12">
					{fields.map((field) => (
						<div key={field.field}>
							<dt className="font-mono text-muted">{field.field.slice(1).replaceAll("/", " › ")}</dt>
							<dd className="flex flex-col gap-0.5 font-mono break-all">
								{field.from !== undefined && <del className="text-failed no-underline">− {shown(field.from)}</del>}
								{field.to !== undefined && <ins className="text-succeeded no-underline">+ {shown(field.to)}</ins>}
							</dd>
						</div>
					))}
				</dl>
			)}
		</li>
	);
}

function shown(value: Json): string {
	const text = typeof value === "string" ? value : JSON.stringify(value);
	return text.length > 400 ? `${text.slice(0, 400)}…` : text;
}
