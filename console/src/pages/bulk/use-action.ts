import type { UseQueryResult } from '@tanstack/react-query'
import { useEffect } from 'react'
import { getBulkAction, listBulkOutcomes } from '../../../../src/contract/bulk/actions.js'
import { urlOf } from '../../api/client.js'
import { CALM_MS, keyOf, useApi } from '../../api/hooks.js'
import { queries } from '../../api/session.js'
import type { Action } from './words.js'

/** A bulk action, kept up to date: the server streams each change, and polling covers a broken connection. */
export function useAction(actionId: string): UseQueryResult<Action, Error> {
  useEffect(() => follow(actionId), [actionId])
  return useApi(getBulkAction, { params: { actionId } }, { everyMs: CALM_MS })
}

/** Writes streamed changes to the cache. @returns a function that stops the stream. */
function follow(actionId: string): () => void {
  const args = { params: { actionId } }
  const queryKey = keyOf(getBulkAction, args)
  const source = new EventSource(urlOf(getBulkAction, args))
  const take = ({ data }: MessageEvent<string>) => {
    // Cancels a pending read: its response would be older than this event.
    void queries.cancelQueries({ queryKey })
    // The tests of the server check the stream against the schema of this endpoint.
    queries.setQueryData(queryKey, JSON.parse(data) as Action)
  }
  source.addEventListener('progress', take)
  source.addEventListener('end', (event) => {
    take(event)
    source.close()
    void queries.invalidateQueries({ queryKey: [listBulkOutcomes.id] })
  })
  return () => source.close()
}
