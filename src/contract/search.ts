import { Type } from 'typebox'

/** Longest text of a search. */
export const LONGEST_SEARCH = 200

/** The query parameter that searches a list. @param description what contains the text. */
export const searchFilter = (description: string) =>
  Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: LONGEST_SEARCH,
      description: `${description}; the case of letters from A to Z is ignored.`,
    }),
  )

/** The member of a page that tells how far a search came. */
export const searchedTo = Type.Optional(
  Type.Integer({
    description:
      'Where a page is not full and there may be more: the request has looked at everything to this time, Unix milliseconds. `cursor` goes on from there.',
  }),
)

/** The text of a search as the store compares it. */
export const searchText = (text: string): string => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
