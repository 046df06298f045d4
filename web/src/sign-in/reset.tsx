import { Page, PageHeader } from "@/ui/page";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";

export default function Reset() {
	return (
		<Page>
			<PageHeader title="New password" />
			<Card>
				<EmptyState title="New password" />
			</Card>
		</Page>
	);
}
