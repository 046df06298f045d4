import { useEditor } from "@/pages/builder/state";
import { useConnection, useLiveConnections } from "@/shared/connections/data";
import { Repair } from "@/shared/connections/repair";
import { ConnectionSelect } from "@/shared/connections/select";
import { warningOf } from "@/shared/connections/status";
import { Field } from "@/ui/field";
import { WarningIcon } from "@/ui/icons";
import { useProblem } from "./form/context";

interface ConnectionFieldProps {
	value: string | undefined;
	/** Of the step or the trigger. */
	pointer: string;
	/** The integration that the connection must belong to, if any. */
	integration?: string;
	/** The service that a new connection is for. */
	service?: string;
}

/** ConnectionField selects the connection that authenticates a step or a trigger. */
export function ConnectionField({ value, pointer, integration, service }: ConnectionFieldProps) {
	const editor = useEditor();
	const at = `${pointer}/connection`;
	const problem = useProblem(at, true);
	return (
		<div data-pointer={at} className="flex flex-col gap-2">
			<Field
				label="Connection"
				hint={integration ? "The account to use." : "Authenticates requests to its hosts."}
				error={problem}
			>
				<ConnectionSelect
					value={value ?? ""}
					{...(integration && { integration })}
					{...(service && { service })}
					onChange={(name) => editor.setField(at, name || undefined)}
				/>
			</Field>
			{value !== undefined && <Warning name={value} />}
		</div>
	);
}

/** Warning says that a connection does not work, and how to repair it. */
function Warning({ name }: { name: string }) {
	useLiveConnections();
	const connection = useConnection(name);
	const text = warningOf(connection);
	if (!connection || !text) return null;
	return (
		<div role="status" className="flex flex-wrap items-center gap-2 rounded-6 bg-waiting-soft px-3 py-2">
			<p className="flex min-w-0 flex-1 basis-40 items-start gap-2 break-words">
				<span className="flex h-5 items-center text-waiting">
					<WarningIcon />
				</span>
				{text}
			</p>
			<Repair connection={connection} />
		</div>
	);
}
