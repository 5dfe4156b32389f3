import { Fragment } from 'react'
import { withoutScheme } from '../lib/format.js'

/** A URL without its scheme. Lines break after a slash where possible, not in the middle of a word. */
export function UrlText({ url }: { readonly url: string }) {
  let offset = 0
  return withoutScheme(url)
    .split(/(?<=\/)/)
    .map((part) => {
      const key = offset
      offset += part.length
      return (
        <Fragment key={key}>
          {part}
          <wbr />
        </Fragment>
      )
    })
}
