import { useEditor } from "@/pages/builder/state";
import { ConnectionSelect } from "@/shared/connections/select";
import { Field } from "@/ui/field";
import { useProblem } from "./form/context";

interface ConnectionFieldProps {
	value: string | undefined;
	/** Of the step or the trigger. */
	pointer: string;
}

/** ConnectionField selects the connection that authenticates a step or a trigger. */
export function ConnectionField({ value, pointer }: ConnectionFieldProps) {
	const editor = useEditor();
	const at = `${pointer}/connection`;
	const problem = useProblem(at, true);
	return (
		<div data-pointer={at}>
			<Field label="Connection" hint="Authenticates requests to its hosts." error={problem}>
				<ConnectionSelect value={value ?? ""} onChange={(name) => editor.setField(at, name || undefined)} />
			</Field>
		</div>
	);
}
