import { TrelloClient } from "trello.js";

const many = (list) => list?.join(",");

// numbered reads pages that have a number until there are enough items.
async function numbered(size, { limit = 100, all }, read) {
  for (let page = 0, count = 0; all || count < limit; page++) {
    const items = await read(page, all ? size : Math.min(limit, size));
    count += items.length;
    if (items.length < size) return;
  }
}

// polled are the triggers, with the types of the actions that they are about.
const polled = { new_card: "createCard,copyCard,emailCard,convertToCardFromCheckItem", card_moved: "updateCard:idList", new_comment: "commentCard" };
const onePage = "the client can only ask for the first page of all actions";

const secrets = { key: "0a1b2c", token: "ATTA-made-up" };

/** @type {import("../service.d.ts").Service<TrelloClient>} */
export default {
  client: "trello.js",
  auth: "api_key",
  secrets,
  connect: ({ at }) => {
    const trello = new TrelloClient(secrets);
    /** @type {any} */ (trello).instance.defaults.baseURL = at("https://api.trello.com/1"); // the client has no option for it
    return trello;
  },
  operations: {
    "hooks/board": ({ webhooks }, i) =>
      i.does === "register"
        ? webhooks.createWebhook({ callbackURL: i.hook.url, idModel: i.board, description: "Stepmill" })
        : webhooks.deleteWebhook({ id: i.subscription.id }).catch((error) => {
            if (error.response?.status !== 404) throw error; // it is gone
          }),
    create_card: ({ cards }, i) =>
      cards.createCard({
        idList: i.list,
        name: i.name,
        desc: i.description,
        pos: i.position ?? "bottom",
        due: i.due,
        idLabels: many(i.labels),
        idMembers: many(i.members),
        urlSource: i.url,
      }),
    update_card: ({ cards }, i) =>
      cards.updateCard({ id: i.card, name: i.name, desc: i.description, closed: i.archived, pos: i.position, due: i.due, dueComplete: i.due_complete }),
    move_card: ({ cards }, i) => cards.updateCard({ id: i.card, idBoard: i.board, idList: i.list, pos: i.position ?? "bottom" }),
    get_card: ({ cards }, i) => cards.getCard({ id: encodeURIComponent(i.card) }),
    list_cards: ({ boards, lists }, i) => (i.list ? lists.getListCards({ id: i.list }) : boards.getBoardCards({ id: i.board })),
    search_cards: ({ search }, i) =>
      numbered(100, i, async (cardsPage, cardsLimit) => {
        const found = /** @type {any} */ (await search.getSearch({ query: i.text, idBoards: i.board, modelTypes: "cards", cardsLimit, cardsPage, partial: true }));
        return found.cards;
      }),
    delete_card: ({ cards }, i) => cards.deleteCard({ id: i.card }),
    add_comment: ({ cards }, i) => cards.addCardComment({ id: i.card, text: i.text }),
    list_comments: ({ cards }, i) => cards.getCardActions({ id: i.card, filter: "commentCard" }),
    ...Object.fromEntries(Object.entries(polled).map(([name, filter]) => [`triggers/${name}`, ({ boards }, i) => boards.getBoardActions({ boardId: i.board, filter })])),
    add_label: ({ cards }, i) => cards.addCardLabel({ id: i.card, value: i.label }),
    remove_label: ({ cards }, i) => cards.deleteCardLabel({ id: i.card, idLabel: i.label }),
    add_member: ({ cards }, i) => cards.addCardMember({ id: i.card, value: i.member }),
    remove_member: ({ cards }, i) => cards.deleteCardMember({ id: i.card, idMember: i.member }),
    add_checklist: async ({ cards, checklists }, i) => {
      const { id } = /** @type {any} */ (await cards.createCardChecklist({ id: i.card, name: i.name }));
      for (const name of i.items ?? []) await checklists.createChecklistCheckItems({ id, name, pos: "bottom" });
    },
    list_checklists: ({ cards }, i) => cards.getCardChecklists({ id: i.card }),
    update_check_item: ({ cards }, i) => cards.updateCardCheckItem({ id: i.card, idCheckItem: i.item, name: i.name, state: i.state ?? "complete" }),
    add_file: ({ cards }, i) =>
      cards.createCardAttachment({ id: i.card, file: i.file.content, name: i.name ?? i.file.name, mimeType: "text/plain; charset=utf-8", setCover: i.cover }),
    add_link: ({ cards }, i) => cards.createCardAttachment({ id: i.card, name: i.name, url: i.url }),
    list_attachments: ({ cards }, i) => cards.getCardAttachments({ id: i.card }),
    create_list: ({ boards }, i) => boards.createBoardList({ id: i.board, name: i.name, pos: i.position ?? "bottom" }),
    create_label: ({ boards }, i) => boards.createBoardLabel({ id: i.board, name: i.name, color: i.color }),
    create_board: ({ boards }, i) =>
      boards.createBoard({
        name: i.name,
        desc: i.description,
        idOrganization: i.workspace,
        defaultLists: i.default_lists ?? true,
        prefsPermissionLevel: i.visibility ?? "private",
      }),
    list_boards: ({ members }) => members.getMemberBoards({ id: "me", filter: "open", fields: ["name", "desc", "url", "shortLink", "idOrganization", "dateLastActivity"] }),
    list_lists: ({ boards }, i) => boards.getBoardLists({ id: i.board, filter: "open" }),
    list_labels: ({ boards }, i) => boards.getBoardLabels({ id: i.board, limit: 1000 }),
    list_members: ({ boards }, i) => boards.getBoardMembers({ id: i.board }),
    list_check_items: ({ cards }, i) => cards.getCardChecklists({ id: i.card }),
    list_workspaces: ({ members }) => members.getMemberOrganizations({ id: "me", fields: "displayName,name" }),
  },
  normalize: (request) => {
    // Trello takes the credential in a header, and everything else in the body. The client
    // puts it in the address, which is limited and gets into logs.
    const { key, token, ...given } = request.query;
    request.headers.authorization = `OAuth oauth_consumer_key="${key}", oauth_token="${token}"`;
    request.query = given;
    if (request.method === "GET" || Object.keys(given).length === 0) return;
    delete request.query;
    if (request.multipart) {
      request.multipart = { ...request.multipart, ...given };
      request.multipart.file.type = given.mimeType; // the client derives it from the name as well
    } else {
      request.json = Object.fromEntries(Object.entries(given).map(([name, value]) => [name, value === "true" || (value === "false" ? false : value)]));
    }
  },
  differences: [
    { operation: "add_file", test: "with a name", at: "multipart/file/filename", client: "May.txt", ours: "bill.txt", why: "the client sends the name twice; a file keeps its own name" },
    { operation: "list_comments", at: "query/page", ours: "0", why: "the API returns 50 actions with each page; the client cannot ask for one" },
    ...Object.keys(polled).flatMap((name) => [
      { operation: `triggers/${name}`, at: "query/since", ours: "2026-11-18T08:45:00.000Z", why: onePage },
      { operation: `triggers/${name}`, at: "query/limit", ours: "25", why: onePage },
      ...["the rest", "the rest, soon after the first poll", "the rest of thousands"].map((test) => ({ operation: `triggers/${name}`, test, at: "query/before", ours: "a16", why: onePage })),
    ]),
  ],
  without: { get_file: "the client cannot download files" },
};
