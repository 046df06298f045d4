import { Page, PageHeader } from "@/ui/page";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";

export default function Workflows() {
	return (
		<Page>
			<PageHeader title="Workflows" />
			<Card>
				<EmptyState title="No workflows yet. Start from a template or an empty canvas." />
			</Card>
		</Page>
	);
}
