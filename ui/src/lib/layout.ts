/** Places of nodes by forces: connected ones near each other, all apart. */
import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY, type SimulationNodeDatum } from 'd3-force';

export interface LayoutRequest { count: number; links: [number, number][]; fixed: ([number, number] | null)[]; aspect: number }

/** Return x and y of every node; those that are fixed stay. */
export function lay(data: LayoutRequest): Float64Array {
  const nodes: SimulationNodeDatum[] = data.fixed.map((place) => (place ? { x: place[0], y: place[1], fx: place[0], fy: place[1] } : {}));
  const many = data.count > 400;
  const pull = many ? 0.05 : 0.09;
  const simulation = forceSimulation(nodes)
    .force('link', forceLink(data.links.map(([source, target]) => ({ source, target }))).distance(many ? 46 : 84).strength(many ? 0.5 : 0.6))
    .force('charge', forceManyBody().strength(many ? -70 : -230).theta(1.1).distanceMax(many ? 900 : 2000))
    .force('x', forceX(0).strength(pull / data.aspect))
    .force('y', forceY(0).strength(pull * data.aspect))
    .stop();
  if (!many) simulation.force('collide', forceCollide(30));
  const ticks = data.count > 4000 ? 60 : data.count > 1500 ? 110 : many ? 180 : 260;
  simulation.alphaDecay(1 - 0.001 ** (1 / ticks)).tick(ticks);
  const places = new Float64Array(data.count * 2);
  nodes.forEach((node, index) => {
    places[index * 2] = node.x!;
    places[index * 2 + 1] = node.y!;
  });
  return places;
}
