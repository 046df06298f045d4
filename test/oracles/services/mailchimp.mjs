import { createHash } from "node:crypto";
import mailchimp from "@mailchimp/mailchimp_marketing";

const secrets = { key: "0123456789abcdef0123456789abcdef-us6" };

// hash returns the ID of a subscriber.
const hash = ({ email }) => createHash("md5").update(email.toLowerCase()).digest("hex");

// pages reads pages until there are enough items.
async function pages(size, name, { limit = 100, all }, read) {
  const count = all ? size : Math.min(limit, size);
  for (let offset = 0; all || offset < limit; offset += count) {
    const page = await read({ count, offset });
    if (page[name].length < count) return;
  }
}

const groups = (joined = [], left = []) => Object.fromEntries([...joined.map((id) => [id, true]), ...left.map((id) => [id, false])]);
const tags = (names, status) => ({ tags: names.map((name) => ({ name, status })) });
const texts = (values) => values && Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)]));
const without = (name) => ({ exclude_fields: ["_links", `${name}._links`] });
const events = ["subscribe", "unsubscribe", "profile", "upemail", "cleaned", "campaign"];
const sources = ["user", "admin", "api"];

// since returns what polls ask for: a second before the cursor.
const since = ({ cursor }) => new Date(Date.parse(cursor?.since ?? "2026-11-18T08:45:00Z") - 1000).toISOString().replace(".000Z", "Z");
const page = ({ cursor }) => ({ sort_dir: "ASC", count: 100, offset: cursor?.offset });

/** @type {import("../service.d.ts").Service<any>} */
export default {
  client: "@mailchimp/mailchimp_marketing",
  auth: "basic",
  secrets,
  connect: ({ at }) => {
    mailchimp.setConfig({ apiKey: secrets.key });
    mailchimp.basePath = at("https://us6.api.mailchimp.com/3.0"); // the client has no option for it
    return mailchimp;
  },
  operations: {
    add_subscriber: async ({ lists }, i) => {
      await lists.setListMember(i.audience, hash(i), {
        email_address: i.email,
        status_if_new: i.status ?? "subscribed",
        status: i.update_status ? i.status : undefined,
        merge_fields: i.fields,
        interests: i.groups && groups(i.groups),
        language: i.language,
        vip: i.vip,
        email_type: i.format,
      });
      if (i.tags) await lists.updateListMemberTags(i.audience, hash(i), tags(i.tags, "active"));
    },
    update_subscriber: ({ lists }, i) =>
      lists.updateListMember(i.audience, hash(i), {
        email_address: i.new_email,
        status: i.status,
        merge_fields: i.fields,
        interests: i.groups && groups(i.groups, i.leave_groups),
        language: i.language,
        vip: i.vip,
        email_type: i.format,
      }),
    get_subscriber: ({ lists }, i) => lists.getListMember(i.audience, hash(i)),
    search_subscribers: ({ searchMembers }, i) => searchMembers.search(i.text, { list_id: i.audience }),
    list_subscribers: ({ lists }, i) =>
      pages(500, "members", i, (at) =>
        i.segment
          ? lists.getSegmentMembersList(i.audience, i.segment, { include_unsubscribed: i.status === "unsubscribed", ...without("members"), ...at })
          : lists.getListMembersInfo(i.audience, { status: i.status, since_last_changed: i.changed_since, ...without("members"), ...at }),
      ),
    archive_subscriber: ({ lists }, i) => lists.deleteListMember(i.audience, hash(i)),
    delete_subscriber: ({ lists }, i) => lists.deleteListMemberPermanent(i.audience, hash(i)),
    add_tags: ({ lists }, i) => lists.updateListMemberTags(i.audience, hash(i), tags(i.tags, "active")),
    remove_tags: ({ lists }, i) => lists.updateListMemberTags(i.audience, hash(i), tags(i.tags, "inactive")),
    add_note: ({ lists }, i) => lists.createListMemberNote(i.audience, hash(i), { note: i.text }),
    add_event: ({ lists }, i) => lists.createListMemberEvent(i.audience, hash(i), { name: i.name, properties: texts(i.properties), occurred_at: i.time }),
    create_campaign: async ({ campaigns }, i) => {
      const { id } = await campaigns.create({
        type: "regular",
        recipients: { list_id: i.audience, segment_opts: i.segment && { saved_segment_id: Number(i.segment) } },
        settings: {
          subject_line: i.subject,
          preview_text: i.preview_text,
          title: i.title,
          from_name: i.from_name,
          reply_to: i.reply_to,
          template_id: i.template && Number(i.template),
        },
      });
      if (i.html) await campaigns.setContent(id, { html: i.html });
    },
    get_campaign: ({ campaigns }, i) => campaigns.get(i.campaign),
    list_campaigns: ({ campaigns }, i) =>
      pages(100, "campaigns", i, (at) =>
        campaigns.list({
          status: i.status,
          list_id: i.audience,
          since_create_time: i.created_since,
          sort_field: "create_time",
          sort_dir: "DESC",
          ...without("campaigns"),
          ...at,
        }),
      ),
    send_campaign: ({ campaigns }, i) => campaigns.send(i.campaign),
    schedule_campaign: ({ campaigns }, i) => campaigns.schedule(i.campaign, { schedule_time: i.time }),
    send_test: ({ campaigns }, i) => campaigns.sendTestEmail(i.campaign, { test_emails: i.emails, send_type: "html" }),
    replicate_campaign: ({ campaigns }, i) => campaigns.replicate(i.campaign),
    delete_campaign: ({ campaigns }, i) => campaigns.remove(i.campaign),
    get_report: ({ reports }, i) => reports.getCampaignReport(i.campaign),
    list_audiences: ({ lists }, i) => pages(100, "lists", i, (at) => lists.getAllLists({ ...without("lists"), ...at })),
    list_campaign_choices: ({ campaigns }, i) => {
      const fields = ["campaigns.id", "campaigns.settings.title", "campaigns.settings.subject_line"];
      return pages(100, "campaigns", i, (at) => campaigns.list({ sort_field: "create_time", sort_dir: "DESC", fields, ...at }));
    },
    list_segments: ({ lists }, i) => pages(100, "segments", i, (at) => lists.listSegments(i.audience, { ...without("segments"), ...at })),
    list_tags: ({ lists }, i) => lists.tagSearch(i.audience, { name: i.search }),
    list_group_categories: ({ lists }, i) =>
      pages(100, "categories", i, (at) => lists.getListInterestCategories(i.audience, { ...without("categories"), ...at })),
    list_groups: ({ lists }, i) =>
      pages(100, "interests", i, (at) => lists.listInterestCategoryInterests(i.audience, i.group_category, { ...without("interests"), ...at })),
    list_templates: ({ templates }, i) => pages(100, "templates", i, (at) => templates.list({ type: "user", ...without("templates"), ...at })),
    list_merge_fields: ({ lists }, i) => pages(100, "merge_fields", i, (at) => lists.getListMergeFields(i.audience, { ...without("merge_fields"), ...at })),
    "hooks/webhook": ({ lists }, i) =>
      i.does === "register"
        ? lists.createListWebhook(i.audience, {
            url: `${i.hook.url}?secret=${i.hook.secret}`,
            events: Object.fromEntries(events.map((name) => [name, i.events.includes(name)])),
            sources: Object.fromEntries(sources.map((name) => [name, (i.sources ?? sources).includes(name)])),
          })
        : lists.deleteListWebhook(i.audience, i.subscription.id),
    "triggers/new_subscriber": ({ lists }, i) =>
      lists.getListMembersInfo(i.audience, { status: "subscribed", since_timestamp_opt: since(i), sort_field: "timestamp_opt", ...without("members"), ...page(i) }),
    "triggers/subscriber_changed": ({ lists }, i) =>
      lists.getListMembersInfo(i.audience, { since_last_changed: since(i), sort_field: "last_changed", ...without("members"), ...page(i) }),
    "triggers/campaign_sent": ({ campaigns }, i) =>
      campaigns.list({ status: "sent", since_send_time: since(i), sort_field: "send_time", ...without("campaigns"), ...page(i) }),
  },
  differences: [
    {
      at: "headers/authorization",
      client: `Basic ${btoa(`user:${secrets.key}`)}`,
      ours: `Basic ${btoa(`stepmill:${secrets.key}`)}`,
      why: "the name of the user can be any",
    },
  ],
};
