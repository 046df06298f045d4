import { Page, PageHeader } from "@/ui/page";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";

export default function Reference() {
	return (
		<Page>
			<PageHeader title="API reference" />
			<Card>
				<EmptyState title="No reference." />
			</Card>
		</Page>
	);
}
