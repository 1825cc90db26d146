// SPDX-License-Identifier: GPL-2.0-only
// Notifies a trace source's object when a sink connects, so that a trace source without sinks costs
// nothing.
#pragma once

#include <string>

#include <ns3/callback.h>
#include <ns3/object-base.h>
#include <ns3/ptr.h>
#include <ns3/trace-source-accessor.h>

namespace railyard {

template <typename Owner, typename Source>
class OnDemandAccessor final : public ns3::TraceSourceAccessor {
 public:
  OnDemandAccessor(Source Owner::*source, void (Owner::*on_connect)())
      : source_(source), on_connect_(on_connect) {}

  bool ConnectWithoutContext(ns3::ObjectBase* object,
                             const ns3::CallbackBase& sink) const override {
    auto* const owner = dynamic_cast<Owner*>(object);
    if (owner == nullptr) return false;
    (owner->*source_).ConnectWithoutContext(sink);
    (owner->*on_connect_)();
    return true;
  }
  bool Connect(ns3::ObjectBase* object, std::string context,
               const ns3::CallbackBase& sink) const override {
    auto* const owner = dynamic_cast<Owner*>(object);
    if (owner == nullptr) return false;
    (owner->*source_).Connect(sink, context);
    (owner->*on_connect_)();
    return true;
  }
  bool DisconnectWithoutContext(ns3::ObjectBase* object,
                                const ns3::CallbackBase& sink) const override {
    auto* const owner = dynamic_cast<Owner*>(object);
    if (owner == nullptr) return false;
    (owner->*source_).DisconnectWithoutContext(sink);
    return true;
  }
  bool Disconnect(ns3::ObjectBase* object, std::string context,
                  const ns3::CallbackBase& sink) const override {
    auto* const owner = dynamic_cast<Owner*>(object);
    if (owner == nullptr) return false;
    (owner->*source_).Disconnect(sink, context);
    return true;
  }

 private:
  Source Owner::*source_;
  void (Owner::*on_connect_)();
};

// Returns an accessor that calls `on_connect` on the object after each connection.
template <typename Owner, typename Source>
ns3::Ptr<const ns3::TraceSourceAccessor> MakeOnDemandAccessor(Source Owner::*source,
                                                              void (Owner::*on_connect)()) {
  return ns3::Ptr<const ns3::TraceSourceAccessor>(
      new OnDemandAccessor<Owner, Source>(source, on_connect), false);
}

}  // namespace railyard
