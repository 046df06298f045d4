import { Page, PageHeader } from "@/ui/page";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";

export default function Delivery() {
	return (
		<Page>
			<PageHeader title="Delivery" />
			<Card>
				<EmptyState title="No attempts yet." />
			</Card>
		</Page>
	);
}
