import { CopyButton } from "@/ui/copy";

/** Name shows a name with a button that copies the expression for it. */
export function Name({ name, root }: { name: string; root: "secrets" | "vars" }) {
	return (
		<span className="flex min-w-0 items-center gap-1">
			<code className="truncate font-mono text-12 font-medium" title={name}>
				{name}
			</code>
			<CopyButton value={`\${{ ${root}.${name} }}`} label={`Copy the reference to ${name}`} />
		</span>
	);
}
