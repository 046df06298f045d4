import { rewriteForeign } from "@/shared/workflow/expression/foreign";
import { Button } from "@/ui/button";

interface ForeignHintProps {
	value: unknown;
	onChange: (text: string) => void;
}

/** ForeignHint says how expressions are written here, for text with the {{ x }} of other products. */
export function ForeignHint({ value, onChange }: ForeignHintProps) {
	const rewritten = typeof value === "string" ? rewriteForeign(value) : undefined;
	if (rewritten === undefined) return null;
	return (
		<p role="status" className="flex flex-wrap items-center gap-x-2 gap-y-1 rounded-6 bg-sunken px-2 py-1 text-12">
			<span className="min-w-0 flex-1 basis-48">
				This is sent as it is. An expression is written <code className="font-mono">{"${{ … }}"}</code>.
			</span>
			<Button small onClick={() => onChange(rewritten)}>
				Make it an expression
			</Button>
		</p>
	);
}
