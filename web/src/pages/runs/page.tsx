import { Page, PageHeader } from "@/ui/page";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";

export default function Runs() {
	return (
		<Page>
			<PageHeader title="Runs" />
			<Card>
				<EmptyState title="Nothing has run yet. Run a workflow by hand, or wait for its trigger." />
			</Card>
		</Page>
	);
}
