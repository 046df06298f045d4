import { Page, PageHeader } from "@/ui/page";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";

export default function Webhook() {
	return (
		<Page>
			<PageHeader title="Webhook" />
			<Card>
				<EmptyState title="No deliveries yet." />
			</Card>
		</Page>
	);
}
