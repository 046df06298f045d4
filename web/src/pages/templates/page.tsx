import { Page, PageHeader } from "@/ui/page";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";

export default function Templates() {
	return (
		<Page>
			<PageHeader title="Templates" />
			<Card>
				<EmptyState title="No templates." />
			</Card>
		</Page>
	);
}
