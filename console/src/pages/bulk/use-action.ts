import type { UseQueryResult } from '@tanstack/react-query'
import { useEffect } from 'react'
import { getBulkAction, listBulkOutcomes } from '../../../../src/contract/bulk/actions.js'
import { urlOf } from '../../api/client.js'
import { CALM_MS, keyOf, useApi } from '../../api/hooks.js'
import { queries } from '../../api/session.js'
import type { Action } from './words.js'

/** A bulk action as it moves: the server tells of each change. Asking now and then covers a broken connection. */
export function useAction(actionId: string): UseQueryResult<Action, Error> {
  useEffect(() => follow(actionId), [actionId])
  return useApi(getBulkAction, { params: { actionId } }, { everyMs: CALM_MS })
}

/** Takes what the server tells into the cache; answers how to stop. */
function follow(actionId: string): () => void {
  const args = { params: { actionId } }
  const queryKey = keyOf(getBulkAction, args)
  const source = new EventSource(urlOf(getBulkAction, args))
  const take = ({ data }: MessageEvent<string>) => {
    // An answer that is on its way is older than this.
    void queries.cancelQueries({ queryKey })
    // The server checks what it streams against the schema of this endpoint in its tests.
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
