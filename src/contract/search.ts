import { Type } from 'typebox'

/** Longest text of a search. */
export const MAX_SEARCH_LENGTH = 200

/** The query parameter that searches a list. @param description says which items match. */
export const searchFilter = (description: string) =>
  Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_SEARCH_LENGTH,
      description: `${description}; the case of letters from A to Z is ignored.`,
    }),
  )

/** The member of a page that says how far a search came. */
export const searchedTo = Type.Optional(
  Type.Integer({
    description:
      'Present when the page is not full although there may be more matches: the request has searched everything up to this time, Unix milliseconds. Send `cursor` to continue from there.',
  }),
)

/** The text of a search as the store compares it. */
export const searchText = (text: string): string => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
