import { Link } from "@tanstack/react-router";
import { Button } from "@/ui/button";
import { Frame } from "./frame";

/** InvalidLink is shown for a link that does not work. */
export function InvalidLink({ children }: { children: string }) {
	return (
		<Frame title="This link does not work" lead={children}>
			<Button asChild className="w-full">
				<Link to="/sign-in">Go to sign in</Link>
			</Button>
		</Frame>
	);
}
