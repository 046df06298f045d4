import { Badge } from "@/ui/badge";
import { CheckIcon, ClockIcon, WarningIcon } from "@/ui/icons";
import type { Connection } from "./data";

const looks: Record<string, { name: string; tone: "good" | "bad" | "warn" | "neutral"; todo?: string }> = {
	connected: { name: "Connected", tone: "good" },
	untested: { name: "Not tested", tone: "neutral", todo: "Test it to see whether it works." },
	failing: { name: "Failing", tone: "bad", todo: "Correct the connection, then test it." },
	needs_reconnect: { name: "Needs reconnecting", tone: "warn", todo: "Steps wait until someone reconnects it." },
};

/** statusName returns the display name of a status. */
export const statusName = (status: string): string => looks[status]?.name ?? status;

/** statusTodo returns what to do about a status, if anything. */
export const statusTodo = (status: string): string | undefined => looks[status]?.todo;

/** testVerb names the test of a connection: that of a broken one requests a token again, which may repair it. */
export const testVerb = ({ status }: Pick<Connection, "status">): string =>
	status === "needs_reconnect" ? "Try again" : "Test";

/** warningOf returns why steps with a connection cannot succeed for now, if they cannot. */
export function warningOf(
	connection: Pick<Connection, "name" | "status" | "problem"> | null | undefined,
): string | undefined {
	if (connection?.status === "needs_reconnect")
		return `“${connection.name}” must be reconnected. Steps that use it wait until then.`;
	if (connection?.status === "failing")
		return `The connection “${connection.name}” does not work: ${connection.problem ?? "its last test failed"}.`;
	return undefined;
}

export function ConnectionStatus({ status }: { status: string }) {
	const { name, tone } = looks[status] ?? { name: status, tone: "neutral" as const };
	const Shape = tone === "good" ? CheckIcon : tone === "neutral" ? ClockIcon : WarningIcon;
	return (
		<Badge tone={tone}>
			<Shape size={12} />
			{name}
		</Badge>
	);
}
