import { Link } from "@/ui/link";
import { useConnections } from "./data";

/** ReconnectLink leads to a connection that runs wait for. */
export function ReconnectLink({ name }: { name: string }) {
	const id = useConnections().data?.find((one) => one.name === name)?.id;
	if (id === undefined) return <Link to="/connections">Open connections</Link>;
	return (
		<Link to="/connections/$id" params={{ id }}>
			Reconnect {name}
		</Link>
	);
}
