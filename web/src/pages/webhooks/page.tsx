import { Page, PageHeader } from "@/ui/page";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";

export default function Webhooks() {
	return (
		<Page>
			<PageHeader title="Webhooks" />
			<Card>
				<EmptyState title="No webhooks yet." />
			</Card>
		</Page>
	);
}
